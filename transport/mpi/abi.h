#pragma once

#include <cstdint>

// These are the parts of MPI that tutti uses. MPI is found at run time, so no mpi.h is needed. Three binary
// interfaces (ABIs) exist. They agree on the functions, but not on the values of handles and constants.
// tests/unit/transport/mpi compares this file with each mpi.h that is installed.
namespace tutti::mpi {

using Outcome = int;
inline constexpr Outcome success = 0;

// A `Table` holds the functions of MPI that tutti uses, each under its name without "MPI_". `Raw` is the type
// of a handle: `int` in MPICH's family, and a pointer in the other ABIs.
template <class Raw>
struct Table {
  Outcome (*Initialized)(int* flag);
  Outcome (*Finalized)(int* flag);
  Outcome (*Init_thread)(int* count, char*** arguments, int wanted, int* provided);
  Outcome (*Finalize)();
  Outcome (*Query_thread)(int* provided);
  Outcome (*Is_thread_main)(int* flag);
  Outcome (*Get_library_version)(char* text, int* length);
  Outcome (*Error_string)(Outcome outcome, char* text, int* length);
  Outcome (*Comm_rank)(Raw communicator, int* rank);
  Outcome (*Comm_size)(Raw communicator, int* size);
  Outcome (*Comm_idup)(Raw communicator, Raw* copy, Raw* request);
  Outcome (*Comm_set_errhandler)(Raw communicator, Raw handler);
  Outcome (*Ibcast)(void* data, int count, Raw type, int root, Raw communicator, Raw* request);
  Outcome (*Test)(Raw* request, int* flag, void* status);
  Outcome (*Isend)(const void* data, int count, Raw type, int to, int tag, Raw communicator, Raw* request);
  Outcome (*Irecv)(void* data, int count, Raw type, int from, int tag, Raw communicator, Raw* request);
  Outcome (*Cancel)(Raw* request);
  Outcome (*Test_cancelled)(const void* status, int* flag);
  Outcome (*Get_count)(const void* status, Raw type, int* count);
};

// `ThreadLevels` are the values that MPI_Init_thread takes.
struct ThreadLevels {
  int single, funneled, serialized, multiple;
};

// `Constants` are the values of one ABI whose handles are numbers, or numbers that are cast to pointers.
struct Constants {
  std::uintptr_t comm_world, byte, errors_return;
  std::uintptr_t status_ignore;
  int any_source;
  ThreadLevels levels;
};

// This is the ABI of MPICH and of the libraries that are compatible with it: Intel MPI, MVAPICH, Cray MPI.
inline constexpr Constants mpich_abi = {.comm_world = 0x44000000,
                                        .byte = 0x4c00010d,
                                        .errors_return = 0x54000001,
                                        .status_ignore = 1,
                                        .any_source = -2,
                                        .levels = {0, 1, 2, 3}};

// This is the ABI of the MPI standard, since version 5.
inline constexpr Constants standard_abi = {.comm_world = 0x101,
                                           .byte = 0x247,
                                           .errors_return = 0x143,
                                           .status_ignore = 0,
                                           .any_source = -1,
                                           .levels = {0, 1024, 2048, 4096}};

// In Open MPI 4 and 5, a handle is the address of one of these symbols of the library.
namespace open_mpi_abi {
inline constexpr const char* comm_world = "ompi_mpi_comm_world";
inline constexpr const char* byte = "ompi_mpi_byte";
inline constexpr const char* errors_return = "ompi_mpi_errors_return";
inline constexpr std::uintptr_t status_ignore = 0;
inline constexpr int any_source = -1;
inline constexpr ThreadLevels levels = {0, 1, 2, 3};
}  // namespace open_mpi_abi

// No ABI writes longer texts than these.
inline constexpr int longest_version = 8192;
inline constexpr int longest_error = 1024;
// No ABI has a larger MPI_Status. tutti reads a status only through MPI's functions.
inline constexpr int largest_status = 64;
// Every MPI allows at least the tags from 0 to this one (MPI_TAG_UB).
inline constexpr int largest_tag = 32767;

}  // namespace tutti::mpi
