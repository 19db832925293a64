// Ranks run this program in tests of difficult environments: `adversity_rank MODE...`.
//   alarms SECONDS      a timer interrupts system calls every millisecond; the timer starts before `init`
//   workers             forks children while threads are at work; the children end in different ways
//   clock STOP_FILE     computes until rank 0 sees the file; says "jump N" at the Nth jump of the wall clock
//   few DESCRIPTORS     may open only that many descriptors; the limit is set before `init`
//   fork                forks while a communicator exists
//   destroy HOW         rank 0 destroys communicators with operations in flight; HOW is `main` (in `main`),
//                       `then` (inside a callback) or `abort` (after ranks 0 and 1 have aborted)
// The program prints "ready" once all ranks have met (except in `few`), and "well" at the end. If it fails,
// it prints the error to stderr and exits with status 1.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tutti/tutti.h>

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using tutti::Communicator;
using tutti::ReduceOp;

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Runs collectives of small and large sizes, so that some send one message and others send many.
void compute(Communicator& comm, int round) {
  const int p = comm.size(), rank = comm.rank();
  for (const std::size_t count : {std::size_t{1}, round % 20 == 19 ? std::size_t{300'000} : 1000}) {
    std::vector<std::int64_t> data(count, rank + round);
    comm.all_reduce(data, ReduceOp::sum).wait();
    for (const std::int64_t value : data) expect(value == p * (p - 1) / 2 + p * round, "wrong sum");
  }
  std::int32_t from = -1;
  const std::int32_t own = rank;
  tutti::Work received = comm.recv(std::span(&from, 1), (rank + p - 1) % p, 1);
  comm.send(std::span(&own, 1), (rank + 1) % p, 1).wait();
  received.wait();
  expect(from == (rank + p - 1) % p, "wrong message");
}

std::atomic<long> alarms{0};

// Runs for at least `duration` seconds, and until each rank has had 200 alarms. (Alarms are rare on a busy
// machine.)
void storm(double duration) {
  constexpr long enough = 200;
  struct sigaction action {};
  action.sa_handler = [](int) { alarms.fetch_add(1); };
  sigaction(SIGALRM, &action, nullptr);  // no SA_RESTART
  const itimerval each{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &each, nullptr);
  Communicator comm = tutti::init();
  say("ready");
  const auto end = steady_clock::now() + std::chrono::duration<double>(duration);
  for (int round = 0, more = 1; more != 0; ++round) {
    compute(comm, round);
    if (round % 10 == 0) {
      Communicator again = std::move(*comm.split(0));
      compute(again, round);
    }
    more = steady_clock::now() < end || alarms < enough ? 1 : 0;
    comm.all_reduce(std::span(&more, 1), ReduceOp::max).wait();
  }
  comm = Communicator();
  say("alarms " + std::to_string(alarms.load()));
}

// Returns the seconds by which the wall clock is ahead of the monotonic clock.
double ahead() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(wall - steady_clock::now().time_since_epoch()).count();
}

void jumping_clock(const std::string& stop) {
  double before = ahead();
  int jumps = 0;
  Communicator comm = tutti::init();
  for (int round = 0, more = 1; more != 0; ++round) {
    compute(comm, round);
    if (round == 5) say("ready");
    std::this_thread::sleep_for(milliseconds(2));
    if (const double now = ahead(); std::abs(now - before) > 1800) {
      before = now;
      say("jump " + std::to_string(++jumps));
    }
    more = access(stop.c_str(), F_OK) == 0 ? 0 : 1;
    comm.broadcast(std::span(&more, 1), 0).wait();
  }
}

void with_few_descriptors(rlim_t count) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = count;
  setrlimit(RLIMIT_NOFILE, &limit);
  Communicator comm = tutti::init();
  for (int round = 0; round < 30; ++round) compute(comm, round);
}

// Tests that a child cannot use its parent's communicator, but can make its own.
void child_of(Communicator& comm) {
  std::vector<float> data(1000);
  tutti::Work pending = comm.recv(data, 0, 77);
  const auto code_of = [](auto call) {
    try {
      call();
    } catch (const tutti::Error& error) {
      return error.code();
    }
    return tutti::Code::ok;
  };
  using tutti::Code;
  expect(code_of([&] { comm.all_reduce(data, ReduceOp::sum).wait(); }) == Code::unsupported, "all_reduce");
  const auto memory = std::as_writable_bytes(std::span(data));
  expect(code_of([&] { comm.register_memory(memory); }) == Code::unsupported, "register_memory");
  expect(code_of([&] { pending.wait(); }) == Code::unsupported, "a receive");
  expect(code_of([&] { comm.split(0); }) == Code::unsupported, "split");
  expect(code_of([&] { comm.shrink(); }) == Code::unsupported, "shrink");
  comm.abort("a child has no say");
  comm = Communicator();
#if !defined(__SANITIZE_THREAD__)  // TSan does not support threads in forked children
  for (const char* variable : {"TUTTI_RANK", "TUTTI_WORLD_SIZE", "TUTTI_INIT_METHOD"}) unsetenv(variable);
  Communicator own = tutti::init();
  compute(own, 19);
#endif
}

void forks() {
  Communicator comm = tutti::init();
  compute(comm, 19);
  say("ready");
  const pid_t child = fork();
  if (child == 0) {
    try {
      child_of(comm);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the child: %s\n", error.what());
      _exit(1);
    }
    _exit(0);
  }
  for (int round = 0; round < 200; ++round) compute(comm, round);
  int status = -1;
  waitpid(child, &status, 0);
  expect(status == 0, "the child has failed");
  compute(comm, 19);
}

// Destroys `comm` on rank 0 while operations are in flight. `how` selects one of several ways.
void let_go(Communicator comm, const std::string& how) {
  std::vector<std::vector<float>> data(4, std::vector<float>(200'000, 1.0F));
  std::vector<tutti::Work> works;
  for (std::size_t i = 0; i < 3; ++i) works.push_back(comm.all_reduce(data[i], ReduceOp::sum));
  // No rank ever sends the message for this receive.
  works.push_back(comm.recv(data[3], (comm.rank() + 1) % comm.size(), 5));
  tutti::Work never = works.back();
  std::atomic<bool> gone{false};
  if (comm.rank() == 0 && how == "then") {
    auto last = std::make_shared<Communicator>(std::move(comm));
    tutti::Work first = works.front();
    first.then([&gone, last = std::move(last)](const tutti::Status&) mutable {
      last.reset();
      gone = true;
    });
    while (!gone) std::this_thread::sleep_for(milliseconds(1));
  } else if (how == "abort" && comm.rank() < 2) {
    comm.abort("enough");
  }
  if (comm && comm.rank() == 0) {
    comm = Communicator();
    for (const tutti::Work& work : works) expect(work.done(), "an operation outlives its communicator");
  }
  for (tutti::Work& work : works) {
    try {
      work.wait();
    } catch (const tutti::Error& error) {
      expect(error.code() == tutti::Code::aborted, error.what());
    }
  }
  expect(never.status().code() == tutti::Code::aborted, never.status().to_string());
}

// Children inherit these communicators. A child destroys them, or first tries to use them.
std::vector<Communicator> inherited;

[[noreturn]] void worker(int kind) {
  alarm(120);  // kills a child that hangs
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  // At exit, a sanitizer would wait for threads that do not exist in the child.
  if (kind == 1) kind = 0;
#endif
  if (kind == 1) std::exit(0);  // destroys `inherited`
  if (kind == 2) {
    std::vector<float> data(1000);
    for (Communicator& comm : inherited) {
      try {
        comm.all_reduce(data, ReduceOp::sum).wait();
        _exit(3);
      } catch (const tutti::Error& error) {
        if (error.code() != tutti::Code::unsupported) _exit(4);
      }
      comm.abort("a child has no say");
    }
  }
  inherited.clear();
  _exit(0);
}

// Makes mostly small calls. Each call takes and releases all locks.
void hurry(Communicator& comm, const std::atomic<bool>& stop) {
  float sum = 0;
  char more = 1;
  for (int round = 0; more != 0; ++round) {
    compute(comm, round);
    for (int i = 0; i < 50; ++i) comm.all_reduce(std::span(&sum, 1), ReduceOp::sum).wait();
    more = stop ? 0 : 1;
    comm.all_reduce(std::span(&more, 1), ReduceOp::max).wait();
  }
}

// Forks while several other threads are working, so that children find unfinished work. A single
// other thread would not be enough, since it would hardly ever hold the lock that a child needs.
void forks_at_work() {
  constexpr int busy_threads = 3;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int forks = 60;  // sanitizers make each fork slow
#else
  constexpr int forks = 300;
#endif
  inherited.push_back(tutti::init());
  for (int i = 0; i < busy_threads; ++i) inherited.push_back(*inherited.front().split(0));
  std::atomic<bool> stop{false};
  say("ready");
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < inherited.size(); ++i)
    threads.emplace_back([&, i] { hurry(inherited[i], stop); });
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child == 0) worker(i % 3);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::fprintf(stderr, "child %d, of kind %d, ended with status %d\n", i, i % 3, status);
      std::_Exit(1);  // skips destructors, since the other threads are still working
    }
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  compute(inherited.front(), 19);
  inherited.clear();
}

void destroys(const std::string& how) {
  Communicator comm = tutti::init();
  compute(comm, 19);
  say("ready");
  for (int round = 0; round < 10; ++round) {
    let_go(std::move(*comm.split(0)), how);
    compute(comm, round);
  }
  // These messages tell rank 0 that the other ranks have finished all rounds.
  char here = 1;
  for (int other = 1; other < comm.size(); ++other) {
    if (comm.rank() == other) comm.send(std::span(&here, 1), 0, 9).wait();
    if (comm.rank() == 0) comm.recv(std::span(&here, 1), other, 9).wait();
  }
  let_go(std::move(comm), how == "abort" ? "main" : how);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string mode = words.at(0);
  if (mode == "alarms") storm(std::stod(words.at(1)));
  if (mode == "clock") jumping_clock(words.at(1));
  if (mode == "few") with_few_descriptors(std::stoul(words.at(1)));
  if (mode == "fork") forks();
  if (mode == "workers") forks_at_work();
  if (mode == "destroy") destroys(words.at(1));
  say("well");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
