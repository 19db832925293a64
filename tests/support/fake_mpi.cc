// This is an MPI with the ABI of the MPI standard, for tests of errors. Its world has one rank. FAKE_MPI says
// what goes wrong:
//   init_fails, init_hangs            MPI_Init_thread
//   copy_fails, copy_hangs            MPI_Comm_idup
//   broadcast_fails, broadcast_hangs  MPI_Ibcast
//   funneled                          only the thread that has initialized MPI may call it
//   incomplete                        MPI_Get_library_version fails, so tutti rejects the library
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <unistd.h>

namespace {

constexpr int other_error = 16;
constexpr int thread_funneled = 1024, thread_multiple = 4096;

bool initialized = false, finalized = false, hangs = false;
std::thread::id main_thread;

bool wrong(std::string_view what) {
  const char* const mode = std::getenv("FAKE_MPI");
  return mode != nullptr && mode == what;
}

int thread_level() { return wrong("funneled") ? thread_funneled : thread_multiple; }

// Begins a call that completes in MPI_Test, unless it hangs.
int begin(std::string_view failure, std::string_view hanging) {
  hangs = wrong(hanging);
  return wrong(failure) ? other_error : 0;
}

}  // namespace

extern "C" {

int MPI_Abi_get_version(int* major, int* minor) {
  *major = 1;
  *minor = 0;
  return 0;
}
int MPI_Get_library_version(char* text, int* length) {
  if (wrong("incomplete")) return other_error;
  *length = std::sprintf(text, "Fake MPI 5.0, of tutti's tests");
  return 0;
}
int MPI_Initialized(int* flag) {
  *flag = initialized ? 1 : 0;
  return 0;
}
int MPI_Finalized(int* flag) {
  *flag = finalized ? 1 : 0;
  return 0;
}
int MPI_Init_thread(int*, char***, int, int* provided) {
  while (wrong("init_hangs")) pause();
  if (wrong("init_fails")) return other_error;
  initialized = true;
  main_thread = std::this_thread::get_id();
  *provided = thread_level();
  return 0;
}
int MPI_Finalize() {
  finalized = true;
  std::puts("finalized");
  return 0;
}
int MPI_Query_thread(int* provided) {
  *provided = thread_level();
  return 0;
}
int MPI_Is_thread_main(int* flag) {
  *flag = main_thread == std::this_thread::get_id() ? 1 : 0;
  return 0;
}
int MPI_Error_string(int outcome, char* text, int* length) {
  *length = std::sprintf(text, "the fake's error %d", outcome);
  return 0;
}
int MPI_Comm_rank(void*, int* rank) {
  *rank = 0;
  return 0;
}
int MPI_Comm_size(void*, int* size) {
  *size = 1;
  return 0;
}
int MPI_Comm_idup(void* communicator, void** copy, void**) {
  *copy = communicator;
  return begin("copy_fails", "copy_hangs");
}
int MPI_Comm_set_errhandler(void*, void*) { return 0; }
int MPI_Ibcast(void*, int, void*, int, void*, void**) { return begin("broadcast_fails", "broadcast_hangs"); }
int MPI_Test(void**, int* flag, void*) {
  *flag = hangs ? 0 : 1;
  return 0;
}

}  // extern "C"
