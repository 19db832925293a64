/* This is the C interface: all of Communicator and Work, for C11 and for languages that can call C. Programs
 * include <tutti/c.h> and link libtutti; they need no C++.
 *
 * Results. A function that can fail returns a code: TUTTI_OK, or a TUTTI_ERROR_*, after which
 * tutti_error_message() says what happened, on the same thread, until the next call that fails there. A
 * result that a function hands out through a pointer is null or zero if the function fails. A null handle is
 * TUTTI_ERROR_INVALID_ARGUMENT, except for functions that return no code (tutti_comm_rank, ...), which
 * require a handle that is not null.
 *
 * Operations. A call issues an operation, which starts at once, and hands out a `tutti_work`. With a null
 * `work` it returns when the operation is over, with its code. Every rank calls the same collectives in the
 * same order with the same count, type, operation and root; ranks that disagree get TUTTI_ERROR_MISMATCH.
 * Buffers are neither copied nor owned: an input must not change and an output not be read until the
 * operation is over; after that they are never touched again, also if it failed. In and out must not overlap
 * or, with TUTTI_IN_PLACE, be the same. Counts are elements, never bytes. A count of zero is fine, with any
 * pointer. A failed collective, a timeout or a lost peer fails the whole communicator: everything pending and
 * everything later ends with that first cause.
 *
 * Threads. Any thread may call anything, but threads that issue collectives on one communicator must order
 * themselves, since operations match by order of issue. Handles are freed once, by one thread, when no other
 * thread is inside a call on them. In a forked child only the functions that free, and a new tutti_init, may
 * be called.
 *
 * Times. They are nanoseconds. INT64_MAX means no limit; negative times are TUTTI_ERROR_INVALID_ARGUMENT.
 *
 * Structures that may grow begin with their size: fill them with the macro next to them, then set members.
 * The interface only grows: a program compiled against an older tutti.h runs with a newer library. */
#ifndef TUTTI_C_H_
#define TUTTI_C_H_

#include <stddef.h>
#include <stdint.h>

#define TUTTI_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Codes ---- */

enum {
  TUTTI_OK = 0,
  TUTTI_ERROR_TIMEOUT = 1,
  TUTTI_ERROR_PEER_LOST = 2,
  TUTTI_ERROR_ABORTED = 3,
  TUTTI_ERROR_MISMATCH = 4,
  TUTTI_ERROR_UNAUTHENTICATED = 5,
  TUTTI_ERROR_UNREACHABLE = 6,
  TUTTI_ERROR_INVALID_ARGUMENT = 7,
  TUTTI_ERROR_UNSUPPORTED = 8,
  TUTTI_ERROR_RESOURCE_EXHAUSTED = 9,
  TUTTI_ERROR_PROTOCOL = 10,
  TUTTI_ERROR_INTERNAL = 11
};

/* "timeout", "peer_lost", ...; "ok"; "unknown". Static. */
TUTTI_C_API const char* tutti_code_name(int code);
/* The reason of the last failed call on this thread: "peer_lost: rank 0 (host b, pid 4711): ...". Never
 * null; valid until the next call that fails on this thread. */
TUTTI_C_API const char* tutti_error_message(void);
/* The world rank that this reason blames, or -1. */
TUTTI_C_API int tutti_error_peer(void);
/* Makes `message` (null: none) the thread's last error and returns `code`, for callbacks that fail.
 */
TUTTI_C_API int tutti_error_set(int code, const char* message);

/* "0.1.0" */
TUTTI_C_API const char* tutti_version(void);

/* ---- Types ---- */

typedef int tutti_data_type;
enum {
  TUTTI_INT8 = 0,
  TUTTI_UINT8 = 1,
  TUTTI_INT32 = 2,
  TUTTI_UINT32 = 3,
  TUTTI_INT64 = 4,
  TUTTI_UINT64 = 5,
  TUTTI_FLOAT16 = 6,
  TUTTI_BFLOAT16 = 7,
  TUTTI_FLOAT32 = 8,
  TUTTI_FLOAT64 = 9,
  TUTTI_BOOL = 10,
  TUTTI_FLOAT8_E4M3 = 11,
  TUTTI_FLOAT8_E5M2 = 12
};

/* The size of one element in bytes; 0 for a number that is not a type. */
TUTTI_C_API size_t tutti_data_type_size(tutti_data_type type);
/* "int8", "bfloat16", "bool", ...; "unknown". Static. */
TUTTI_C_API const char* tutti_data_type_name(tutti_data_type type);

typedef struct tutti_comm tutti_comm;             /* a group of ranks that compute together */
typedef struct tutti_work tutti_work;             /* one operation in flight */
typedef struct tutti_allocation tutti_allocation; /* memory that the ranks of a host share */

/* ---- How elements are combined ---- */

/* On TUTTI_BOOL sum and max are OR, product and min are AND, the bit operations are logical, avg is invalid.
 * Avg divides the sum by the number of ranks (integers: towards zero). Bit operations: integers or bool. */
typedef const struct tutti_op_object* tutti_op;
#define TUTTI_SUM ((tutti_op)1)
#define TUTTI_PRODUCT ((tutti_op)2)
#define TUTTI_MIN ((tutti_op)3)
#define TUTTI_MAX ((tutti_op)4)
#define TUTTI_AVG ((tutti_op)5)
#define TUTTI_BIT_AND ((tutti_op)6)
#define TUTTI_BIT_OR ((tutti_op)7)
#define TUTTI_BIT_XOR ((tutti_op)8)

/* Multiplies each rank's input by its factor, then sums. Ranks may have different factors. */
TUTTI_C_API int tutti_op_create_premultiplied_sum(double factor, tutti_op* op);

/* Writes out[i] = left[i] combined with right[i] for `count` elements; `out` may be `left` or `right`. Must
 * be deterministic and associative. Called on any thread, on several at once for several operations. Returns
 * TUTTI_OK; or another code if it cannot combine them, with the reason set by tutti_error_set. Then the
 * collective fails with TUTTI_ERROR_ABORTED on all ranks, and the error has the reason and the rank. */
typedef int (*tutti_op_function)(const void* left, const void* right, void* out, size_t count,
                                 tutti_data_type type, void* state);
/* Every rank must create the same function under the same name. One that is not commutative is applied in the
 * order of ranks. */
TUTTI_C_API int tutti_op_create_user(const char* name, tutti_op_function function, int commutative,
                                     void* state, tutti_op* op);
/* A user operation must live until all operations that use it are over; a premultiplied sum may be freed once
 * they are issued. Does nothing for null and for built-in operations. */
TUTTI_C_API void tutti_op_free(tutti_op op);

/* ---- Meeting ---- */

typedef struct tutti_init_options {
  size_t struct_size;
  const char* url;    /* "tcp://host:port?rank=0&world_size=2", "file:///path?...", "env://"; null: env:// */
  int rank;           /* -1: from the URL, then from the environment */
  int world_size;     /* -1: likewise */
  int64_t timeout_ns; /* for meeting all ranks; 0: TUTTI_INIT_TIMEOUT */
  const char* transports; /* "shm,tcp", in order of preference; "auto": all that work; null: TUTTI_TRANSPORTS,
                             else all that work */
  /* Called several times a second while the ranks meet, on the thread that is inside tutti_init. A result
   * other than zero ends tutti_init with TUTTI_ERROR_ABORTED, here and on the other ranks. May be null. */
  int (*interrupted)(void* interrupted_state);
  void* interrupted_state;
} tutti_init_options;
#define TUTTI_INIT_OPTIONS_INIT \
  { sizeof(tutti_init_options), NULL, -1, -1, 0, NULL, NULL, NULL }

/* Meets the other ranks and hands out the communicator of all of them. Blocks until every rank has arrived;
 * TUTTI_ERROR_TIMEOUT names the ranks that have not. `options` may be null. Without any launcher, URL or
 * variable this is a world of one rank. */
TUTTI_C_API int tutti_init(const tutti_init_options* options, tutti_comm** comm);

/* Hands out the rank that tutti_init would give this process, by `options` (may be null) and the environment.
 * It contacts no other rank. */
TUTTI_C_API int tutti_place(const tutti_init_options* options, int* rank, int* world_size);

/* The answer of a store's callback. tutti_bytes_set copies the bytes. */
typedef struct tutti_bytes tutti_bytes;
TUTTI_C_API int tutti_bytes_set(tutti_bytes* bytes, const void* data, size_t size);

/* A key-value table that all ranks reach, as functions of the caller (in effect those of c10d's Store). Ranks
 * can meet over such a store if the program already has one. Keys are text, values are any bytes. Each
 * function returns TUTTI_OK or a code, preferably from tutti_error_set. A function that waits does so for
 * `timeout_ns` at most, then returns TUTTI_ERROR_TIMEOUT; zero or less means not to wait. All are called on
 * the thread that is inside tutti_init_store, and not after that has returned. Only `exists` may be null. */
typedef struct tutti_store {
  size_t struct_size;
  void* state; /* handed to each function */
  int (*set)(void* state, const char* key, const void* value, size_t size, int64_t timeout_ns);
  /* Waits for the key to exist. */
  int (*get)(void* state, const char* key, int64_t timeout_ns, tutti_bytes* value);
  /* Waits until all keys exist. */
  int (*wait)(void* state, const char* const* keys, size_t count, int64_t timeout_ns);
  /* Adds to the number that the key holds as decimal text (0 if there is none); hands out the sum. */
  int (*add)(void* state, const char* key, int64_t delta, int64_t timeout_ns, int64_t* sum);
  /* Sets the key to `desired` if it holds `expected`, or if there is none and `expected` is empty. Hands out
   * what the key holds afterwards; for a missing key that was not set, `expected`. */
  int (*compare_set)(void* state, const char* key, const void* expected, size_t expected_size,
                     const void* desired, size_t desired_size, int64_t timeout_ns, tutti_bytes* value);
  /* Hands out whether there was such a key. */
  int (*delete_key)(void* state, const char* key, int64_t timeout_ns, int* existed);
  /* Hands out whether there is such a key, without waiting. If null, `wait` is called with a timeout of 0. */
  int (*exists)(void* state, const char* key, int64_t timeout_ns, int* there);
} tutti_store;
#define TUTTI_STORE_INIT \
  { sizeof(tutti_store), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Works as tutti_init, over a store of the caller, under keys that begin with "tutti/" and TUTTI_JOB_ID. In
 * `options` (may be null), url, rank and world_size are ignored. A store serves one such meeting at a time; a
 * program that makes several over one store gives each a prefix. */
TUTTI_C_API int tutti_init_store(const tutti_store* store, int rank, int world_size,
                                 const tutti_init_options* options, tutti_comm** comm);

/* ---- Communicators ---- */

/* Operations still in flight end with TUTTI_ERROR_ABORTED; never hangs. Null is fine. Works and allocations
 * may outlive it; while an allocation does, the group behind it lives on: operations in flight are not ended,
 * and the other ranks are told that this one has left only when the last allocation is freed. */
TUTTI_C_API void tutti_comm_free(tutti_comm* comm);
TUTTI_C_API int tutti_comm_rank(const tutti_comm* comm);
TUTTI_C_API int tutti_comm_size(const tutti_comm* comm);
/* TUTTI_OK, or the first cause of failure. */
TUTTI_C_API int tutti_comm_status(const tutti_comm* comm);
/* Ends everything pending and later on this communicator with TUTTI_ERROR_ABORTED, here and on all ranks that
 * can be reached. Returns at once. */
TUTTI_C_API int tutti_comm_abort(tutti_comm* comm, const char* reason);
/* "rank 3 (host b, pid 4711)" into `text`, cut to `size` bytes with its NUL. Returns its whole length. */
TUTTI_C_API size_t tutti_comm_describe(const tutti_comm* comm, int rank, char* text, size_t size);

/* The colour of a rank that joins no group. */
#define TUTTI_NO_COLOR (-1)
/* Collective and blocking: the ranks with equal `color` form a communicator, ordered by `key`, then by rank.
 * Connections are shared. Hands out null to ranks that pass TUTTI_NO_COLOR. */
TUTTI_C_API int tutti_comm_split(tutti_comm* comm, int color, int key, tutti_comm** part);
/* After a rank was lost: the communicator of the survivors, in the same order. Every survivor calls it; the
 * old one cannot be used afterwards. `completed` (may be null): the number of the old one's collectives,
 * counted from the first, that every survivor has completed. TUTTI_ERROR_PEER_LOST if no more than half of
 * the ranks are left, or, if `min_size` is not 0, fewer than that. Collective and blocking. */
TUTTI_C_API int tutti_comm_shrink(tutti_comm* comm, int min_size, tutti_comm** survivors,
                                  uint64_t* completed);

typedef struct tutti_statistics {
  size_t struct_size;
  uint64_t operations;
  uint64_t registered_operations; /* that worked in place on memory from tutti_allocate */
  uint64_t messages_sent;         /* of the whole process, as are all figures below */
  uint64_t messages_received;
  uint64_t frames_sent;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t connections;
} tutti_statistics;
#define TUTTI_STATISTICS_INIT \
  { sizeof(tutti_statistics), 0, 0, 0, 0, 0, 0, 0, 0 }
TUTTI_C_API int tutti_comm_statistics(const tutti_comm* comm, tutti_statistics* statistics);

/* For programs with their own event loop: the descriptor is readable when there is something to do (do not
 * read, write or close it). tutti_comm_progress does it, and returns 1 if it did something, else 0. */
TUTTI_C_API int tutti_comm_descriptor(const tutti_comm* comm);
TUTTI_C_API int tutti_comm_progress(tutti_comm* comm);

/* Zeroed, page aligned memory that the transports between the ranks know: collectives of this communicator
 * whose buffers lie in such memory on all ranks copy nothing in or out; other ranks then write into it while
 * the operation runs. Collective and blocking; sizes may differ. */
TUTTI_C_API int tutti_allocate(tutti_comm* comm, size_t bytes, tutti_allocation** allocation);
TUTTI_C_API void* tutti_allocation_data(const tutti_allocation* allocation);
TUTTI_C_API size_t tutti_allocation_size(const tutti_allocation* allocation);
/* Returns 1 if other ranks reach the memory directly; 0 if it is ordinary memory. */
TUTTI_C_API int tutti_allocation_registered(const tutti_allocation* allocation);
/* Frees this rank's handle. The memory is freed when all ranks have freed theirs. Null is fine. */
TUTTI_C_API void tutti_allocation_free(tutti_allocation* allocation);

/* ---- Operations in flight ---- */

/* Returns when the operation is over, with its code. TUTTI_ERROR_INVALID_ARGUMENT inside a tutti_work_then
 * callback. A thread that waits makes progress for all operations of the process while it does. */
TUTTI_C_API int tutti_work_wait(tutti_work* work);
/* Works as tutti_work_wait, for at most `timeout_ns`. If the operation is still running, `done` becomes 0,
 * TUTTI_OK is returned and the operation goes on. Otherwise `done` becomes 1. */
TUTTI_C_API int tutti_work_wait_for(tutti_work* work, int64_t timeout_ns, int* done);
/* Returns 1 if the operation is over, successfully or not, else 0. It makes no progress by itself. */
TUTTI_C_API int tutti_work_test(const tutti_work* work);
/* TUTTI_OK while running and after success, else why it failed. */
TUTTI_C_API int tutti_work_status(const tutti_work* work);
/* Calls `callback` once when the operation is over, on the thread that notices: a waiting thread, an issuing
 * thread or the library's own. If the operation is already over, this thread calls it at once. `message` and
 * `peer` are those of tutti_error_message and tutti_error_peer, valid during the call. Callbacks must be
 * short and must not wait; issuing operations, and freeing this work, is fine. */
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
/* Hands out what has arrived, after a successful tutti_recv. */
TUTTI_C_API int tutti_work_received(const tutti_work* work, tutti_received* received);
/* Another handle to the same operation. */
TUTTI_C_API tutti_work* tutti_work_copy(const tutti_work* work);
/* Does not cancel the operation: it runs to its end, and its buffers must live that long. Null is fine. */
TUTTI_C_API void tutti_work_free(tutti_work* work);

/* ---- Collectives ---- */

typedef struct tutti_call_options {
  size_t struct_size;
  /* If the operation is not over by then it fails with TUTTI_ERROR_TIMEOUT, and the communicator with it.
   * 0: TUTTI_TIMEOUT. */
  int64_t timeout_ns;
  /* By name ("ring"), the same on all ranks; null: chosen by size. `tutti explain` lists them. */
  const char* algorithm;
} tutti_call_options;
#define TUTTI_CALL_OPTIONS_INIT \
  { sizeof(tutti_call_options), 0, NULL }

/* Passed as `in`: the input is in `out`, and is replaced. */
#define TUTTI_IN_PLACE ((const void*)UINTPTR_MAX)

/* Every rank: out[i] = in[i] of rank 0 op ... op in[i] of the last rank, with the same bits on all ranks. */
TUTTI_C_API int tutti_all_reduce(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                 tutti_work** work);
/* Works as tutti_all_reduce, with the result on `root` only. Elsewhere `out` is ignored, or in place
 * unchanged. */
TUTTI_C_API int tutti_reduce(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             tutti_op op, int root, const tutti_call_options* options, tutti_work** work);
/* Every rank's buffer becomes the root's. */
TUTTI_C_API int tutti_broadcast(tutti_comm* comm, void* in_out, size_t count, tutti_data_type type, int root,
                                const tutti_call_options* options, tutti_work** work);
/* out = the `count` elements of rank 0, those of rank 1, ...: size * count in all. In place: a rank's own
 * block of `out` holds its input. */
TUTTI_C_API int tutti_all_gather(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, const tutti_call_options* options, tutti_work** work);
/* counts[r] elements come from rank r; the same `size` counts on all ranks. Not with TUTTI_IN_PLACE. */
TUTTI_C_API int tutti_all_gather_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                                   tutti_data_type type, const tutti_call_options* options,
                                   tutti_work** work);
/* Block r, of `count` elements, of the reduced vector goes to rank r; `in` holds size * count. In place:
 * `out` holds size * count, the result replaces the rank's own block, other blocks are undefined afterwards.
 */
TUTTI_C_API int tutti_reduce_scatter(tutti_comm* comm, const void* in, void* out, size_t count,
                                     tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                     tutti_work** work);
/* Works as tutti_reduce_scatter, with counts[r] elements for rank r. Not with TUTTI_IN_PLACE. */
TUTTI_C_API int tutti_reduce_scatter_v(tutti_comm* comm, const void* in, void* out, const uint64_t* counts,
                                       tutti_data_type type, tutti_op op, const tutti_call_options* options,
                                       tutti_work** work);
/* Block r, of `count` elements, of `in` goes to rank r, block r of `out` comes from it. */
TUTTI_C_API int tutti_all_to_all(tutti_comm* comm, const void* in, void* out, size_t count,
                                 tutti_data_type type, const tutti_call_options* options, tutti_work** work);
/* in_counts[r] elements go to rank r, out_counts[r] come from it; each side must expect what the other sends.
 * Not with TUTTI_IN_PLACE. */
TUTTI_C_API int tutti_all_to_all_v(tutti_comm* comm, const void* in, const uint64_t* in_counts, void* out,
                                   const uint64_t* out_counts, tutti_data_type type,
                                   const tutti_call_options* options, tutti_work** work);
/* Works as tutti_all_gather, with the result on `root` only. Elsewhere `out` is ignored. Not with
 * TUTTI_IN_PLACE: a root's `in` may be its own block of `out`. */
TUTTI_C_API int tutti_gather(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             int root, const tutti_call_options* options, tutti_work** work);
/* `in` holds in_count elements; counts[r] come from rank r, which only the root must know. */
TUTTI_C_API int tutti_gather_v(tutti_comm* comm, const void* in, size_t in_count, void* out,
                               const uint64_t* counts, tutti_data_type type, int root,
                               const tutti_call_options* options, tutti_work** work);
/* Block r, of `count` elements, of the root's `in` goes to rank r; elsewhere `in` is ignored. Not with
 * TUTTI_IN_PLACE: a root's `out` may be its own block of `in`. */
TUTTI_C_API int tutti_scatter(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                              int root, const tutti_call_options* options, tutti_work** work);
/* counts[r] elements go to rank r, which only the root must know; `out` holds out_count. */
TUTTI_C_API int tutti_scatter_v(tutti_comm* comm, const void* in, const uint64_t* counts, void* out,
                                size_t out_count, tutti_data_type type, int root,
                                const tutti_call_options* options, tutti_work** work);
/* Rank r: the reduction over ranks 0..r; exscan: 0..r-1, and rank 0's output is left as it was. */
TUTTI_C_API int tutti_scan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                           tutti_op op, const tutti_call_options* options, tutti_work** work);
TUTTI_C_API int tutti_exscan(tutti_comm* comm, const void* in, void* out, size_t count, tutti_data_type type,
                             tutti_op op, const tutti_call_options* options, tutti_work** work);
/* The operation is over when every rank has called it. */
TUTTI_C_API int tutti_barrier(tutti_comm* comm, const tutti_call_options* options, tutti_work** work);

/* ---- Point to point ---- */

#define TUTTI_ANY_RANK (-1)
#define TUTTI_ANY_TAG UINT64_MAX

/* Messages are outside the order of collectives. Messages from one rank with equal tags arrive in order of
 * sending. A send is over when its buffer may be reused. The receive's buffer may be larger than the message
 * (tutti_work_received tells); if it is smaller the receive fails with TUTTI_ERROR_MISMATCH. Tags below 2^63.
 * A receive from TUTTI_ANY_RANK or with TUTTI_ANY_TAG takes the earliest that fits. `peer` is a rank of this
 * communicator. The option `algorithm` is ignored. */
TUTTI_C_API int tutti_send(tutti_comm* comm, const void* data, size_t count, tutti_data_type type, int peer,
                           uint64_t tag, const tutti_call_options* options, tutti_work** work);
TUTTI_C_API int tutti_recv(tutti_comm* comm, void* data, size_t count, tutti_data_type type, int peer,
                           uint64_t tag, const tutti_call_options* options, tutti_work** work);

enum { TUTTI_SEND = 0, TUTTI_RECV = 1 };
/* One transfer of a batch. This structure will not grow. */
typedef struct tutti_transfer {
  int direction; /* TUTTI_SEND or TUTTI_RECV */
  tutti_data_type type;
  void* data; /* only read when sending */
  size_t count;
  uint64_t tag;
  int peer;
} tutti_transfer;
/* Starts all transfers together. It is over when the last one is, and fails if one fails. The array is
 * copied. */
TUTTI_C_API int tutti_batch(tutti_comm* comm, const tutti_transfer* transfers, size_t count,
                            const tutti_call_options* options, tutti_work** work);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_C_H_ */
