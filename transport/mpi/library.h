#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <tutti/status.h>

#include "transport/mpi/abi.h"

namespace tutti::mpi {

// A `Handle` is an MPI handle of any ABI, such as a communicator or a request. While a request is under way,
// MPI may still write to the handles of the call that started it, so these must stay where they are.
union Handle {
  void* address = nullptr;
  int integer;
};

enum class Family { open_mpi, mpich, standard };
enum class ThreadLevel { single, funneled, serialized, multiple };

// A `Library` is an MPI library that was found at run time. Its functions call MPI's functions, and hide the
// differences between the ABIs. The thread level says which threads may call them.
class Library {
 public:
  // Opens the first of `names` that the process has already loaded, or else the first that can be loaded.
  // Fails with `unsupported` if no library can be loaded, or if it is not MPI 3.0 or later with an ABI that
  // tutti knows. Any thread may call `open`.
  static Result<std::unique_ptr<Library>> open(std::span<const std::string> names);
  virtual ~Library() = default;

  Family family() const { return family_; }
  // Returns "libmpi.so.40 (Open MPI v4.1.4)", for messages.
  std::string describe() const;

  // Any thread may call these three functions at any time (MPI_Initialized, MPI_Finalized, MPI_Error_string).
  virtual bool is_initialized() const = 0;
  virtual bool is_finalized() const = 0;
  // Returns ok, or an `invalid_argument` error that says what was attempted, and contains MPI's own text.
  virtual Status status_of(Outcome outcome, const std::string& attempt) const = 0;

  // Initializes MPI with the highest thread level that it provides (MPI_Init_thread). Blocks until all ranks
  // do so.
  virtual Outcome initialize() const = 0;
  // Blocks until all ranks finalize MPI (MPI_Finalize).
  virtual Outcome finalize() const = 0;

  // The functions below need an MPI that is initialized and not finalized.
  virtual ThreadLevel thread_level() const = 0;
  virtual bool is_on_main_thread() const = 0;
  virtual Handle world() const = 0;
  virtual Outcome rank_in(Handle communicator, int& rank) const = 0;
  virtual Outcome size_of(Handle communicator, int& size) const = 0;
  // Makes MPI return errors on this communicator (MPI_Comm_set_errhandler). Without this call, MPI ends the
  // job at an error.
  virtual Outcome return_errors(Handle communicator) const = 0;
  // Starts to duplicate a communicator (MPI_Comm_idup).
  virtual Outcome start_copy(Handle communicator, Handle& copy, Handle& request) const = 0;
  // Starts to send `bytes` from the root to all other ranks (MPI_Ibcast).
  virtual Outcome start_broadcast(std::span<std::byte> bytes, int root, Handle communicator,
                                  Handle& request) const = 0;
  // Starts to send a message (MPI_Isend). There must be at most INT_MAX bytes.
  virtual Outcome start_send(std::span<const std::byte> bytes, int to, int tag, Handle communicator,
                             Handle& request) const = 0;
  // Starts to receive a message with this tag from any rank (MPI_Irecv). There must be at most INT_MAX bytes.
  virtual Outcome start_receive(std::span<std::byte> memory, int tag, Handle communicator,
                                Handle& request) const = 0;
  // Lets the request progress, and sets `done` if it is complete (MPI_Test).
  virtual Outcome test(Handle& request, bool& done) const = 0;
  // Does the same for a receive. If it is complete, sets `bytes` to the size of the message, or to nothing if
  // the receive was cancelled.
  virtual Outcome test_receive(Handle& request, bool& done, std::optional<std::size_t>& bytes) const = 0;
  // Asks MPI to cancel a receive (MPI_Cancel). The request must be tested until it is complete.
  virtual Outcome cancel(Handle& request) const = 0;

 protected:
  Library(std::string name, std::string version, Family family)
      : name_(std::move(name)), version_(std::move(version)), family_(family) {}

 private:
  std::string name_, version_;
  Family family_;
};

}  // namespace tutti::mpi
