// This is an MPI with the ABI of the MPI standard, for tests of errors. Its world has one rank, which can
// send messages to itself. As in real MPIs, a large send ends only when its message is received. FAKE_MPI
// says what goes wrong:
//   init_fails, init_hangs            MPI_Init_thread
//   copy_fails, copy_hangs            MPI_Comm_idup
//   broadcast_fails, broadcast_hangs  MPI_Ibcast
//   send_fails, receive_fails         MPI_Isend, MPI_Irecv
//   test_fails                        MPI_Test of a receive
//   cancel_hangs                      MPI_Cancel does nothing
//   serialized                        only one thread at a time may call it; the process ends if two do
//   funneled                          only the thread that has initialized MPI may call it
//   incomplete                        MPI_Get_library_version fails, so tutti rejects the library
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

constexpr int other_error = 16;
constexpr int thread_funneled = 1024, thread_serialized = 2048, thread_multiple = 4096;
constexpr std::size_t largest_eager = 4096;

bool initialized = false, finalized = false, hangs = false;
std::thread::id main_thread;

bool wrong(std::string_view what) {
  const char* const mode = std::getenv("FAKE_MPI");
  return mode != nullptr && mode == what;
}

int thread_level() {
  if (wrong("serialized")) return thread_serialized;
  return wrong("funneled") ? thread_funneled : thread_multiple;
}

// A `Request` is a send or a receive. The memory of an eager send is copied.
struct Request {
  bool is_receive = false, done = false, cancelled = false;
  void* communicator = nullptr;
  int tag = 0;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::vector<std::byte> copy = {};
};

// All requests that have not ended. The set is never destroyed. So a request that its caller has given up is
// not a leak.
std::set<Request*>& living = *new std::set<Request*>;

Request* make(Request request) {
  auto* const made = new Request(std::move(request));
  living.insert(made);
  return made;
}

void end(Request* request) {
  living.erase(request);
  delete request;
}

struct Status {
  std::size_t bytes;
  int cancelled;
};

// The messages and receives that have not met yet, in the order of the calls. Both lists refer to requests,
// except that an eager message that was sent completely belongs to the list.
std::mutex mutex;
std::list<Request*> messages, receives;
std::atomic<int> callers{0};

// A `Call` is a call of a function that only one thread at a time may make with MPI_THREAD_SERIALIZED.
class Call {
 public:
  Call() {
    if (callers.fetch_add(1) > 0 && wrong("serialized")) {
      std::fputs("two threads call MPI at once\n", stderr);
      std::abort();
    }
    lock_ = std::unique_lock(mutex);
  }
  ~Call() {
    lock_.unlock();
    callers.fetch_sub(1);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
};

void deliver(Request& message, Request& receive) {
  if (message.bytes > receive.bytes) std::abort();  // MPI_ERR_TRUNCATE
  const std::byte* const from = message.copy.empty() ? message.memory : message.copy.data();
  if (message.bytes > 0) std::memcpy(receive.memory, from, message.bytes);
  receive.bytes = message.bytes;
  receive.done = true;
  if (message.done) {
    end(&message);  // an eager message
  } else {
    message.done = true;
  }
}

// Returns the first request in the list that matches this one, and removes it from the list. Returns null if
// there is none.
Request* take(std::list<Request*>& from, const Request& match) {
  const auto found = std::ranges::find_if(from, [&match](const Request* each) {
    return each->communicator == match.communicator && each->tag == match.tag;
  });
  if (found == from.end()) return nullptr;
  Request* const request = *found;
  from.erase(found);
  return request;
}

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
int MPI_Comm_idup(void*, void** copy, void** request) {
  static char communicators[64];
  static std::size_t made = 0;
  *copy = &communicators[made++ % sizeof communicators];
  *request = nullptr;
  return begin("copy_fails", "copy_hangs");
}
int MPI_Comm_set_errhandler(void*, void*) { return 0; }
int MPI_Ibcast(void*, int, void*, int, void*, void** request) {
  *request = nullptr;
  return begin("broadcast_fails", "broadcast_hangs");
}
int MPI_Isend(const void* data, int count, void*, int, int tag, void* communicator, void** request) {
  const Call call;
  if (wrong("send_fails")) return other_error;
  const auto bytes = static_cast<std::size_t>(count);
  auto* const message = make({.communicator = communicator,
                              .tag = tag,
                              .memory = static_cast<std::byte*>(const_cast<void*>(data)),
                              .bytes = bytes});
  *request = message;
  if (bytes <= largest_eager) {
    message->copy.assign(message->memory, message->memory + bytes);
    message->done = true;
    *request = make({.done = true});
  }
  if (Request* const receive = take(receives, *message)) {
    deliver(*message, *receive);
  } else {
    messages.push_back(message);
  }
  return 0;
}
int MPI_Irecv(void* data, int count, void*, int, int tag, void* communicator, void** request) {
  const Call call;
  if (wrong("receive_fails")) return other_error;
  auto* const receive = make({.is_receive = true,
                              .communicator = communicator,
                              .tag = tag,
                              .memory = static_cast<std::byte*>(data),
                              .bytes = static_cast<std::size_t>(count)});
  *request = receive;
  if (Request* const message = take(messages, *receive)) {
    deliver(*message, *receive);
  } else {
    receives.push_back(receive);
  }
  return 0;
}
int MPI_Cancel(void** request) {
  const Call call;
  auto* const receive = static_cast<Request*>(*request);
  if (wrong("cancel_hangs") || receive->done) return 0;
  std::erase(receives, receive);
  receive->done = receive->cancelled = true;
  return 0;
}
int MPI_Test(void** request, int* flag, void* status) {
  const Call call;
  auto* const tested = static_cast<Request*>(*request);
  *flag = tested == nullptr ? !hangs : tested->done;
  if (tested == nullptr) return 0;
  if (wrong("test_fails") && tested->is_receive) return other_error;
  if (!tested->done) return 0;
  const Status ended = {tested->bytes, tested->cancelled ? 1 : 0};
  if (status != nullptr) std::memcpy(status, &ended, sizeof ended);
  end(tested);
  *request = nullptr;
  return 0;
}
int MPI_Test_cancelled(const void* status, int* flag) {
  *flag = static_cast<const Status*>(status)->cancelled;
  return 0;
}
int MPI_Get_count(const void* status, void*, int* count) {
  *count = static_cast<int>(static_cast<const Status*>(status)->bytes);
  return 0;
}

}  // extern "C"
