/* This part of the C interface defines the result codes, the element types and the kinds of memory.
 * <tutti/c.h> includes it, and explains how results and errors work. */
#ifndef TUTTI_C_TYPES_H_
#define TUTTI_C_TYPES_H_

#include <stddef.h>

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

/* Returns a code's name: "ok", "timeout", ..., or "unknown" for other numbers. The text is static. */
TUTTI_C_API const char* tutti_code_name(int code);
/* Returns the reason for this thread's last failure: never null, valid until the thread's next failure. */
TUTTI_C_API const char* tutti_error_message(void);
/* Returns the world rank that this thread's last failed call blames, or -1. */
TUTTI_C_API int tutti_error_peer(void);
/* Lets callbacks report errors: sets this thread's last error (`message` may be null), and returns
 * `code`. */
TUTTI_C_API int tutti_error_set(int code, const char* message);

/* Returns "0.1.0". */
TUTTI_C_API const char* tutti_version(void);

/* ---- Element types ---- */

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

/* Returns the size of one element in bytes; 0 for a number that is no type. */
TUTTI_C_API size_t tutti_data_type_size(tutti_data_type type);
/* Returns a type's name: "int8", "bfloat16", "bool", ...; "unknown" for other numbers. The text is static. */
TUTTI_C_API const char* tutti_data_type_name(tutti_data_type type);

/* ---- Memory ---- */

/* A `tutti_memory` says in which memory a buffer lies: the host's or a CUDA device's. tutti's
 * transports read and write host memory only. If CUDA's driver is found (docs/gpu.md), NCCL carries
 * out collectives on device memory, or tutti copies their data to and from the host. tutti also
 * copies messages. If neither is possible, such a collective ends with TUTTI_ERROR_UNSUPPORTED on all
 * ranks, and a send or receive of device memory ends with this code at once, on the calling rank only.
 * In both cases nothing touches the memory, and the communicator remains usable. If some ranks of a
 * collective pass host memory and others device memory, all ranks get TUTTI_ERROR_MISMATCH. The two ends
 * of a message may use different kinds of memory. Memory that both the host and a device can access may
 * be passed as either. */
typedef int tutti_memory;
enum { TUTTI_HOST = 0, TUTTI_CUDA = 1 };

/* The options of tutti_allocate_with name the memory to allocate. With TUTTI_CUDA, `device` is the device's
 * number in CUDA; with TUTTI_HOST it is ignored. */
typedef struct tutti_allocation_options {
  size_t struct_size;
  tutti_memory memory;
  int device;
} tutti_allocation_options;
#define TUTTI_ALLOCATION_OPTIONS_INIT \
  { sizeof(tutti_allocation_options), TUTTI_HOST, 0 }

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_C_TYPES_H_ */
