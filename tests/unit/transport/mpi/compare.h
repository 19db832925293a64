#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "transport/mpi/abi.h"

// These helpers compare transport/mpi/abi.h with an mpi.h, which must be included first.
namespace tutti::mpi {

// A `Kind` holds the properties of a type that matter to the calling convention.
struct Kind {
  std::size_t size = 0;
  bool pointer = false;
  bool operator==(const Kind&) const = default;
};

template <class T>
constexpr Kind kind_of() {
  return {sizeof(T), std::is_pointer_v<T>};
}

template <class Result, class... Parameters>
constexpr std::array<Kind, sizeof...(Parameters) + 1> kinds(Result (*)(Parameters...)) {
  return {kind_of<Result>(), kind_of<Parameters>()...};
}

// Returns whether a function of the header and a member of `Table` have equal kinds of results and
// parameters.
template <class Ours, class Theirs>
constexpr bool agree() {
  return kinds(static_cast<Ours>(nullptr)) == kinds(static_cast<Theirs*>(nullptr));
}

}  // namespace tutti::mpi

// TUTTI_AGREES compares one function of a `Table` with that of the header. TUTTI_ALL_AGREE compares all
// functions and some constants.
#define TUTTI_AGREES(raw, member) static_assert(agree<decltype(Table<raw>::member), decltype(MPI_##member)>())
#define TUTTI_ALL_AGREE(raw)                                                        \
  TUTTI_AGREES(raw, Initialized);                                                   \
  TUTTI_AGREES(raw, Finalized);                                                     \
  TUTTI_AGREES(raw, Init_thread);                                                   \
  TUTTI_AGREES(raw, Finalize);                                                      \
  TUTTI_AGREES(raw, Query_thread);                                                  \
  TUTTI_AGREES(raw, Is_thread_main);                                                \
  TUTTI_AGREES(raw, Get_library_version);                                           \
  TUTTI_AGREES(raw, Error_string);                                                  \
  TUTTI_AGREES(raw, Comm_rank);                                                     \
  TUTTI_AGREES(raw, Comm_size);                                                     \
  TUTTI_AGREES(raw, Comm_idup);                                                     \
  TUTTI_AGREES(raw, Comm_set_errhandler);                                           \
  TUTTI_AGREES(raw, Ibcast);                                                        \
  TUTTI_AGREES(raw, Test);                                                          \
  TUTTI_AGREES(raw, Isend);                                                         \
  TUTTI_AGREES(raw, Irecv);                                                         \
  TUTTI_AGREES(raw, Cancel);                                                        \
  TUTTI_AGREES(raw, Test_cancelled);                                                \
  TUTTI_AGREES(raw, Get_count);                                                     \
  static_assert(sizeof(MPI_Status) <= largest_status && alignof(MPI_Status) <= 16); \
  static_assert(MPI_SUCCESS == success);                                            \
  static_assert(MPI_MAX_LIBRARY_VERSION_STRING <= longest_version && MPI_MAX_ERROR_STRING <= longest_error)

#define TUTTI_LEVELS_AGREE(levels)                                                                 \
  static_assert((levels).single == MPI_THREAD_SINGLE && (levels).funneled == MPI_THREAD_FUNNELED); \
  static_assert((levels).serialized == MPI_THREAD_SERIALIZED && (levels).multiple == MPI_THREAD_MULTIPLE)
