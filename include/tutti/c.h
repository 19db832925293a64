/* This is the C interface. It offers all of Communicator and Work to C11, and to languages that call C.
 * Include <tutti/c.h>; it needs libtutti but no C++ compiler. The files in collectives/schedule/algorithms/
 * cite where each algorithm comes from.
 *
 * Results. A function that can fail returns a code: TUTTI_OK or a TUTTI_ERROR_*. After an error,
 * tutti_error_message() returns the reason on the same thread, until the next call that fails on that thread.
 * A function that fails sets the results behind its pointer arguments to null or zero. A call with a null
 * handle fails with TUTTI_ERROR_INVALID_ARGUMENT. Functions that return no code (tutti_comm_rank, ...) must
 * not get a null handle, except those that free the handle.
 *
 * Operations. A call issues an operation, which starts at once, and returns a `tutti_work` through its last
 * argument. If that argument is null, the call blocks until the operation has ended, and returns the
 * operation's code. Every rank calls the same collectives in the same order with the same count, type,
 * operation, root and kind of memory. If calls differ, all ranks get TUTTI_ERROR_MISMATCH. Counts are in
 * elements, never bytes. A count of zero is valid, with any pointer.
 *
 * The library neither copies nor owns buffers. The program must not change an input, nor access an
 * output, until the operation has ended. After that the library does not touch them, even if the
 * operation failed (exception: memory from tutti_allocate). Input and output must be disjoint or,
 * with TUTTI_IN_PLACE, equal.
 *
 * Errors of operations. TUTTI_ERROR_INVALID_ARGUMENT means that a count, type or root is wrong, or
 * that buffers overlap. TUTTI_ERROR_UNSUPPORTED means that the reduction is not defined on the
 * type. A call with either error does not count as an operation. A collective on device memory that
 * no library can carry out (see tutti_memory) does count: it ends with TUTTI_ERROR_UNSUPPORTED on
 * all ranks. Every other failure of a collective, and every timeout or lost peer, makes the whole
 * communicator fail. All its pending and later operations then end with this first cause.
 *
 * A library that was added to tutti may carry out whole collectives, usually on device memory. The
 * ranks of a communicator open the library together, at the first collective that the library
 * carries out. This first collective therefore blocks until all ranks have called it. Inside a
 * tutti_work_then callback, this first collective fails with TUTTI_ERROR_INVALID_ARGUMENT.
 *
 * Threads. Any thread may call any function. But threads that issue collectives on one communicator must
 * synchronize, since all ranks must issue these collectives in the same order. Free each handle once, when no
 * other thread is inside a call on it. A forked child can only free the handles of its parent, but may call
 * tutti_init itself.
 *
 * Times are in nanoseconds. INT64_MAX means no limit. Negative times fail with TUTTI_ERROR_INVALID_ARGUMENT.
 *
 * Structures that may grow begin with their size: initialize them with the macro beside them, then set
 * members. The interface only grows: a program compiled against an older header runs with a newer library. */
#ifndef TUTTI_C_H_
#define TUTTI_C_H_

#include <stddef.h>
#include <stdint.h>

#include <tutti/c_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Handles ---- */

typedef struct tutti_comm tutti_comm;                 /* a group of ranks that compute together */
typedef struct tutti_work tutti_work;                 /* one operation in flight */
typedef struct tutti_allocation tutti_allocation;     /* memory of tutti_allocate */
typedef struct tutti_registration tutti_registration; /* keeps memory registered */

/* ---- How elements are combined ---- */

/* On TUTTI_BOOL, sum and max are OR, product and min are AND, bit operations are logical; avg is unsupported.
 * Avg divides the sum by the rank count (integers: towards zero). Bit operations need integers or bool. */
typedef const struct tutti_op_object* tutti_op;
#define TUTTI_SUM ((tutti_op)1)
#define TUTTI_PRODUCT ((tutti_op)2)
#define TUTTI_MIN ((tutti_op)3)
#define TUTTI_MAX ((tutti_op)4)
#define TUTTI_AVG ((tutti_op)5)
#define TUTTI_BIT_AND ((tutti_op)6)
#define TUTTI_BIT_OR ((tutti_op)7)
#define TUTTI_BIT_XOR ((tutti_op)8)
/* Makes an operation that multiplies each rank's input by that rank's factor, and adds the products. */
TUTTI_C_API int tutti_op_create_premultiplied_sum(double factor, tutti_op* op);

/* Writes out[i] = left[i] combined with right[i] for `count` elements; `out` may be `left` or `right`. The
 * function must be deterministic and associative. The library calls it on any thread, and on several threads
 * at once for several operations. It returns TUTTI_OK, or passes a reason to tutti_error_set and returns an
 * error code. In the second case the collective fails on all ranks with TUTTI_ERROR_ABORTED, and the error
 * names the reason and the rank. */
typedef int (*tutti_op_function)(const void* left, const void* right, void* out, size_t count,
                                 tutti_data_type type, void* state);
/* Makes an operation from a function. Every rank must pass the same function under the same name. A function
 * that is not commutative is applied in rank order. */
TUTTI_C_API int tutti_op_create_user(const char* name, tutti_op_function function, int commutative,
                                     void* state, tutti_op* op);
/* Frees an operation. Null and the built-in operations are ignored. A user operation must live until all
 * collectives that use it have ended, and a premultiplied sum until all of them have been issued. */
TUTTI_C_API void tutti_op_free(tutti_op op);

/* ---- Meeting ---- */

typedef struct tutti_init_options {
  size_t struct_size;
  const char* url;    /* tcp://host:port?rank=0&world_size=2, file:///path?..., mpi://, env:// (or null) */
  int rank;           /* -1: from the URL or, if it names none, from the environment */
  int world_size;     /* -1: as for `rank` */
  int64_t timeout_ns; /* for meeting all ranks; 0: TUTTI_INIT_TIMEOUT */
  const char* transports; /* "shm,tcp", in order of preference; "auto": all that work; null: TUTTI_TRANSPORTS,
                             else all that work */
  /* While the ranks meet, tutti_init calls this several times a second, on the calling thread. A result other
   * than zero ends tutti_init with TUTTI_ERROR_ABORTED, here and on the other ranks. May be null. */
  int (*interrupted)(void* interrupted_state);
  void* interrupted_state;
} tutti_init_options;
#define TUTTI_INIT_OPTIONS_INIT \
  { sizeof(tutti_init_options), NULL, -1, -1, 0, NULL, NULL, NULL }

/* Meets the other ranks and returns the communicator of all of them. Blocks until every rank has
 * arrived. TUTTI_ERROR_TIMEOUT names the missing ranks. `options` may be null. Without options and
 * variables, the world has this rank only. */
TUTTI_C_API int tutti_init(const tutti_init_options* options, tutti_comm** comm);
/* Returns the rank and the world size that tutti_init would use, but meets no rank. `options` may be null. */
TUTTI_C_API int tutti_place(const tutti_init_options* options, int* rank, int* world_size);

/* A `tutti_bytes` is the result of a store's callback. tutti_bytes_set copies bytes into it. */
typedef struct tutti_bytes tutti_bytes;
TUTTI_C_API int tutti_bytes_set(tutti_bytes* bytes, const void* data, size_t size);

/* A `tutti_store` is a key-value store that all ranks reach. The caller supplies it as callbacks, so that
 * ranks can meet over an existing store. The callbacks correspond to c10d's Store. Keys are text, values are
 * any bytes. Each callback returns TUTTI_OK or a code, preferably through tutti_error_set. A callback that
 * waits returns TUTTI_ERROR_TIMEOUT after `timeout_ns`. If `timeout_ns` is zero or less, it does not wait.
 * The callbacks run only during tutti_init_store, on the thread that calls it. Only `exists` may be null. */
typedef struct tutti_store {
  size_t struct_size;
  void* state; /* passed to each callback */
  int (*set)(void* state, const char* key, const void* value, size_t size, int64_t timeout_ns);
  /* Waits for the key to exist. */
  int (*get)(void* state, const char* key, int64_t timeout_ns, tutti_bytes* value);
  /* Waits until all keys exist. */
  int (*wait)(void* state, const char* const* keys, size_t count, int64_t timeout_ns);
  /* Adds to the number that the key holds as decimal text (0 if the key is missing); returns the sum. */
  int (*add)(void* state, const char* key, int64_t delta, int64_t timeout_ns, int64_t* sum);
  /* Sets the key to `desired` if it holds `expected`, or if it is missing and `expected` is empty. Returns
   * the key's value afterwards, or `expected` if the key is still missing. */
  int (*compare_set)(void* state, const char* key, const void* expected, size_t expected_size,
                     const void* desired, size_t desired_size, int64_t timeout_ns, tutti_bytes* value);
  /* Deletes the key; returns whether it existed. */
  int (*delete_key)(void* state, const char* key, int64_t timeout_ns, int* existed);
  /* Returns whether the key exists, without waiting. If null, `wait` with zero time replaces it. */
  int (*exists)(void* state, const char* key, int64_t timeout_ns, int* there);
} tutti_store;
#define TUTTI_STORE_INIT \
  { sizeof(tutti_store), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Does the same as tutti_init, but over the caller's store. All keys begin with "tutti/" and the value of
 * TUTTI_JOB_ID. `options` may be null; its url, rank and world_size are ignored. A store serves one such call
 * at a time. If a program makes several calls over one store, it must add a different prefix to the keys of
 * each call. */
TUTTI_C_API int tutti_init_store(const tutti_store* store, int rank, int world_size,
                                 const tutti_init_options* options, tutti_comm** comm);

/* ---- Communicators ---- */

/* Frees a communicator (null is ignored), in two seconds at most. Works, allocations and
 * registrations may outlive it. Once its allocations and registrations are freed, too, operations
 * in flight end with TUTTI_ERROR_ABORTED, and other ranks learn that this rank has left. */
TUTTI_C_API void tutti_comm_free(tutti_comm* comm);
/* Return this rank's number, from 0, and the number of ranks. */
TUTTI_C_API int tutti_comm_rank(const tutti_comm* comm);
TUTTI_C_API int tutti_comm_size(const tutti_comm* comm);
/* Returns TUTTI_OK, or the code of the first cause of failure. */
TUTTI_C_API int tutti_comm_status(const tutti_comm* comm);
/* Ends all pending and later operations with TUTTI_ERROR_ABORTED on all reachable ranks. Returns at once. */
TUTTI_C_API int tutti_comm_abort(tutti_comm* comm, const char* reason);
/* Writes a rank's name ("rank 3 (host b, pid 4711)") into `text`, cut to `size` bytes with its NUL. Returns
 * the length of the whole name, without the NUL; 0 if there is no such rank. */
TUTTI_C_API size_t tutti_comm_describe(const tutti_comm* comm, int rank, char* text, size_t size);
/* A rank that passes this color joins no group. */
#define TUTTI_NO_COLOR (-1)
/* Makes one communicator for each color: the ranks with equal `color`, ordered by `key`, then by rank.
 * Connections are shared. Ranks that pass TUTTI_NO_COLOR get null. Collective and blocking. */
TUTTI_C_API int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part);
/* Makes a communicator of the `count` listed ranks, in this order, as MPI_Comm_create_group does.
 * Only these ranks call it, with equal lists. Overlapping calls need different keys. Blocking.
 * TUTTI_ERROR_INVALID_ARGUMENT: the list leaves out this rank or repeats a rank.
 * TUTTI_ERROR_MISMATCH: lists differ. TUTTI_ERROR_TIMEOUT names a missing rank; `comm` fails, too. */
struct tutti_call_options;
TUTTI_C_API int tutti_comm_group(tutti_comm* comm, const int* ranks, size_t count, int key,
                                 const struct tutti_call_options* options, tutti_comm** group);
/* Returns the communicator of the survivors, in the same order, after a rank was lost. Every
 * survivor calls this; `comm` cannot be used afterwards. All survivors have completed its first
 * `*completed` collectives (`completed` may be null). TUTTI_ERROR_PEER_LOST: fewer than `min_size`
 * ranks are left (0 requires more than half). TUTTI_ERROR_ABORTED: the other ranks continue
 * without this rank. TUTTI_ERROR_TIMEOUT: a survivor has not called within TUTTI_TIMEOUT. Blocking. */
TUTTI_C_API int tutti_comm_shrink(tutti_comm* comm, int min_size, tutti_comm** survivors,
                                  uint64_t* completed);
typedef struct tutti_statistics {
  size_t struct_size;
  uint64_t operations;            /* collectives and messages of this communicator */
  uint64_t registered_operations; /* operations that worked in place on memory from tutti_allocate */
  uint64_t messages_sent;         /* this and all below: totals of one tutti_init */
  uint64_t messages_received;
  uint64_t frames_sent;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t connections;
  uint64_t bytes_in_place; /* received bytes that peers wrote straight into registered memory */
} tutti_statistics;
#define TUTTI_STATISTICS_INIT \
  { sizeof(tutti_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Returns the counts so far. */
TUTTI_C_API int tutti_comm_statistics(const tutti_comm* comm, tutti_statistics* statistics);

/* For event loops: the descriptor is readable when there is something to do. Then call tutti_comm_progress,
 * which returns 1 if it did something and 0 if not. Do not read, write or close the descriptor. */
TUTTI_C_API int tutti_comm_descriptor(const tutti_comm* comm);
TUTTI_C_API int tutti_comm_progress(tutti_comm* comm);
/* Returns zeroed, page-aligned memory, which the ranks share if possible. On one host, some collectives (see
 * Communicator::allocate) copy nothing if `count` elements have 128 KiB or more and the buffers lie in such
 * memory on all ranks. In these collectives, other ranks write into the memory during the operation, and may
 * still finish a piece of 32 KiB after a failure. Fails with TUTTI_ERROR_RESOURCE_EXHAUSTED on all ranks if a
 * host lacks memory. Collective and blocking. Ranks may pass different sizes. */
TUTTI_C_API int tutti_allocate(tutti_comm* comm, size_t bytes, tutti_allocation** allocation);
/* Does the same in the memory that `options` name (null: the host's). Memory of a device is zeroed,
 * and registered with the library that carries out collectives there. Ranks may name different
 * devices. If the call fails, all ranks get the same error. TUTTI_ERROR_INVALID_ARGUMENT: a device
 * does not exist. TUTTI_ERROR_UNSUPPORTED: no library can use the device. TUTTI_ERROR_MISMATCH: some
 * ranks name the host and others a device. */
TUTTI_C_API int tutti_allocate_with(tutti_comm* comm, size_t bytes, const tutti_allocation_options* options,
                                    tutti_allocation** allocation);
TUTTI_C_API void* tutti_allocation_data(const tutti_allocation* allocation);
TUTTI_C_API size_t tutti_allocation_size(const tutti_allocation* allocation);
/* Returns 1 if other ranks can access the memory or a library has registered it, else 0. */
TUTTI_C_API int tutti_allocation_registered(const tutti_allocation* allocation);
/* Frees this rank's handle; null is ignored. Host memory is freed soon after all ranks have freed
 * theirs. Device memory must not be in use; it is freed at once, which may wait for the device. */
TUTTI_C_API void tutti_allocation_free(tutti_allocation* allocation);
/* Registers the program's own memory with the transports. Transports that can write into a peer's memory then
 * receive large messages in this memory without copies. For other transports this changes nothing. Only this
 * rank is involved. */
TUTTI_C_API int tutti_register_memory(tutti_comm* comm, void* data, size_t bytes,
                                      tutti_registration** registration);
/* Ends a registration; null is ignored. Call it after the memory's last use, before freeing the memory. */
TUTTI_C_API void tutti_registration_free(tutti_registration* registration);

/* ---- Operations in flight ---- */

/* Blocks until the operation has ended, and returns its code. A waiting thread makes progress for
 * all operations of the same tutti_init. A tutti_work_then callback cannot wait: inside a callback,
 * this function returns TUTTI_ERROR_INVALID_ARGUMENT if the operation still runs. */
TUTTI_C_API int tutti_work_wait(tutti_work* work);
/* Does what tutti_work_wait does, for at most `timeout_ns`. If the operation has not ended by then,
 * it continues, `done` becomes 0 and the call returns TUTTI_OK. Otherwise `done` becomes 1. */
TUTTI_C_API int tutti_work_wait_for(tutti_work* work, int64_t timeout_ns, int* done);
/* Makes `stream` (a cudaStream_t, of any device) wait until an added library has completed the operation, or
 * its messages in device memory. Only tutti_work_wait tells whether all ranks have made the same call. Does
 * nothing if the operation has ended. Returns its code if it failed, TUTTI_ERROR_UNSUPPORTED if no library
 * works on it or `stream` is captured, and TUTTI_ERROR_INVALID_ARGUMENT if there is no `stream`. */
TUTTI_C_API int tutti_work_wait_on(tutti_work* work, void* stream);
/* Returns 1 once the operation has ended, successfully or not, else 0. Makes no progress by itself. */
TUTTI_C_API int tutti_work_test(const tutti_work* work);
/* Returns TUTTI_OK while the operation runs and after success, else the code of its failure. */
TUTTI_C_API int tutti_work_status(const tutti_work* work);
/* Calls `callback` once when the operation has ended, on the thread that notices it: a waiting thread, an
 * issuing thread, or the library's own. If the operation has already ended, tutti_work_then calls it at once,
 * on this thread. `message` and `peer` are as in tutti_error_message and tutti_error_peer, and valid during
 * the callback. A callback must be short and must not wait. It may issue operations and free this work. */
typedef void (*tutti_callback)(void* state, int code, const char* message, int peer);
TUTTI_C_API int tutti_work_then(tutti_work* work, tutti_callback callback, void* state);

typedef struct tutti_received {
  size_t struct_size;
  int source;
  uint64_t tag;
  uint64_t bytes;
} tutti_received;
#define TUTTI_RECEIVED_INIT \
  { sizeof(tutti_received), -1, 0, 0 }
/* Returns the source, the tag and the bytes of the message, after a successful tutti_recv. */
TUTTI_C_API int tutti_work_received(const tutti_work* work, tutti_received* received);
/* Returns another handle to the same operation. */
TUTTI_C_API tutti_work* tutti_work_copy(const tutti_work* work);
/* Frees a handle (null is ignored). The operation runs to its end, and its buffers must live that long. */
TUTTI_C_API void tutti_work_free(tutti_work* work);

/* ---- Collectives ---- */

typedef struct tutti_call_options {
  size_t struct_size;
  /* The time limit, counted from the call. When it expires, the operation and its communicator fail with
   * TUTTI_ERROR_TIMEOUT. 0 means TUTTI_TIMEOUT. */
  int64_t timeout_ns;
  /* The algorithm's name, equal on all ranks; `tutti explain` lists them. Null: the cheapest by estimate. */
  const char* algorithm;
  /* The memory of all buffers of the call. With TUTTI_CUDA, `device` is the device's number in CUDA, from 0
   * to 16777215; with TUTTI_HOST it is ignored. tutti_barrier ignores both. */
  tutti_memory memory;
  int device;
  /* The operation begins after all work that is already in this stream (a cudaStream_t) of the buffers'
   * device. Null means no stream. Only messages in device memory and collectives of a library can follow one.
   * `region` is reserved for the registered region in which the buffers lie, and must be null. A call with a
   * region, or with a stream that nothing can follow, ends with TUTTI_ERROR_UNSUPPORTED at once. A call with
   * a stream of another device ends with TUTTI_ERROR_INVALID_ARGUMENT. Neither counts as an operation. */
  void* stream;
  const void* region;
} tutti_call_options;
#define TUTTI_CALL_OPTIONS_INIT \
  { sizeof(tutti_call_options), 0, NULL, TUTTI_HOST, 0, NULL, NULL }

/* Passed as `in`, this means that `out` holds the input, and that the result replaces it. It cannot
 * be used with gather, scatter and the _v functions. */
#define TUTTI_IN_PLACE ((const void*)UINTPTR_MAX)

/* Reduces to all ranks: out[i] = in[i] of rank 0 op ... op in[i] of the last rank, with equal bits on all. */
TUTTI_C_API int tutti_all_reduce(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                 tutti_work** work);
/* Like tutti_all_reduce, but only `root` gets the result. Other ranks ignore `out` and do not change it. */
TUTTI_C_API int tutti_reduce(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             tutti_op op, int root, const tutti_call_options* options, tutti_work** work);
/* Copies the root's `count` elements to all ranks. */
TUTTI_C_API int tutti_broadcast(tutti_comm* comm, void* in_out, size_t count, tutti_data_type type, int root,
                                const tutti_call_options* options, tutti_work** work);
/* Concatenates the inputs, of `count` elements each, in rank order on all ranks; `out` holds size * count. In
 * place: a rank's own block of `out` holds its input. */
TUTTI_C_API int tutti_all_gather(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, const tutti_call_options* options, tutti_work** work);
/* Like tutti_all_gather, with counts[r] elements from rank r: `size` counts, the same on all ranks. */
TUTTI_C_API int tutti_all_gather_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                                   tutti_data_type type, const tutti_call_options* options,
                                   tutti_work** work);
/* Reduces, then gives block r, of `count` elements, to rank r; `in` holds size * count. In place, `out` holds
 * size * count too; the result replaces the rank's own block, and the other blocks become undefined. */
TUTTI_C_API int tutti_reduce_scatter(tutti_comm* comm, const void* in, void* out, size_t count,
                                     tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                     tutti_work** work);
/* Like tutti_reduce_scatter, with counts[r] elements for rank r: `size` counts, the same on all ranks. */
TUTTI_C_API int tutti_reduce_scatter_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                                       tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                       tutti_work** work);
/* Sends block r of `in`, of `count` elements, to rank r, and receives block r of `out` from rank r. */
TUTTI_C_API int tutti_all_to_all(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, const tutti_call_options* options, tutti_work** work);
/* Sends in_counts[r] elements to rank r, and receives out_counts[r] from it; blocks lie in rank order. If a
 * receiver's count differs from the sender's, all ranks get TUTTI_ERROR_MISMATCH. */
TUTTI_C_API int tutti_all_to_all_v(tutti_comm* comm, const void* in, const uint64_t* in_counts, void* out,
                                   const uint64_t* out_counts, tutti_data_type type,
                                   const tutti_call_options* options, tutti_work** work);
/* Like tutti_all_gather, for `root` only; others need no `out`. The root's `in` may be its block of `out`. */
TUTTI_C_API int tutti_gather(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             int root, const tutti_call_options* options, tutti_work** work);
/* Like tutti_gather, but `in` has in_count elements: counts[r] on rank r. Only the root needs `counts`. */
TUTTI_C_API int tutti_gather_v(tutti_comm* comm, const void* in, size_t in_count, void* out,
                               const uint64_t* counts, tutti_data_type type, int root,
                               const tutti_call_options* options, tutti_work** work);
/* Sends block r, of `count` elements, of the root's `in` to rank r. Other ranks ignore `in`. The root's `out`
 * may be its own block of `in`. */
TUTTI_C_API int tutti_scatter(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                              int root, const tutti_call_options* options, tutti_work** work);
/* Like tutti_scatter, but `out` has out_count elements: counts[r] on rank r. Only the root needs `counts`. */
TUTTI_C_API int tutti_scatter_v(tutti_comm* comm, const void* in, const uint64_t* counts, void* out,
                                size_t out_count, tutti_data_type type, int root,
                                const tutti_call_options* options, tutti_work** work);
/* Give rank r the reduction over ranks 0..r (scan) or 0..r-1 (exscan; rank 0's output stays as it was). */
TUTTI_C_API int tutti_scan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                           tutti_op op, const tutti_call_options* options, tutti_work** work);
TUTTI_C_API int tutti_exscan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             tutti_op op, const tutti_call_options* options, tutti_work** work);
/* Waits for all ranks: the operation ends when every rank has called tutti_barrier. */
TUTTI_C_API int tutti_barrier(tutti_comm* comm, const tutti_call_options* options, tutti_work** work);

/* ---- Point to point ---- */

#define TUTTI_ANY_RANK (-1)
#define TUTTI_ANY_TAG UINT64_MAX

/* Send and receive one message, independently of the order of collectives. Messages from one rank with equal
 * tags arrive in the order of sending. A send ends when its buffer may be reused. The receive's buffer may be
 * larger than the message (see tutti_work_received); if it is smaller, that receive alone fails with
 * TUTTI_ERROR_MISMATCH. `peer` is a rank of this communicator; tags are below 2^63. A receive from
 * TUTTI_ANY_RANK or with TUTTI_ANY_TAG takes the earliest message that fits. `algorithm` is ignored. */
TUTTI_C_API int tutti_send(tutti_comm* comm, const void* data, size_t count, tutti_data_type type, int peer,
                           uint64_t tag, const tutti_call_options* options, tutti_work** work);
TUTTI_C_API int tutti_recv(tutti_comm* comm, void* data, size_t count, tutti_data_type type, int peer,
                           uint64_t tag, const tutti_call_options* options, tutti_work** work);

enum { TUTTI_SEND = 0, TUTTI_RECV = 1 };
/* A `tutti_transfer` is one message of a batch. This structure does not grow. */
typedef struct tutti_transfer {
  int direction; /* TUTTI_SEND or TUTTI_RECV */
  tutti_data_type type;
  void* data; /* only read when sending */
  size_t count;
  uint64_t tag;
  int peer;
} tutti_transfer;
/* Copies the array and starts all transfers. The operation ends with the last transfer, and fails if one
 * fails. */
TUTTI_C_API int tutti_batch(tutti_comm* comm, const tutti_transfer* transfers, size_t count,
                            const tutti_call_options* options, tutti_work** work);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_C_H_ */
