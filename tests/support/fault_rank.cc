// Ranks run this program in tests of failures: `fault_rank [shrink LEFT LEAST] MODE...`.
//   loop KIND COUNT    makes one collective after the other until one fails
//   idle               makes no calls, and reads the communicator's status until it is an error
//   split KIND COUNT   like `loop`, on communicators that each have half of the ranks
//   compute SECONDS    all ranks except rank 0 wait in a barrier while rank 0 computes; then all leave
//   late WHO           rank WHO makes no call; the others soon call all_reduce, with a timeout of 2 s
//   leave WHO          rank WHO leaves while the others are in an all_reduce
//   differ WHAT [WHO]  rank WHO (default: the last) makes a different call, or calls in another order
//   hasty WHO          like `late`, but rank 0 aborts while it asks which rank is late; afterwards, each
//                      rank prints "rested MILLISECONDS", the processor time that it used in half a second
//   again WHO SECONDS  all ranks call shrink until it does not time out; rank WHO begins SECONDS later
//   part [SPLITS]      all ranks split SPLITS times, call shrink, and leave as soon as it returns
//   abort WHO          rank WHO aborts from another thread while all are blocked
// With `shrink`, the survivors of a loss call shrink(LEAST) and repeat the mode, until at most LEFT
// ranks are left. The program prints "ready" when all ranks have met. A failure makes it print
// "failed NANOSECONDS CODE MESSAGE", even before "ready". NANOSECONDS is the time on the monotonic
// clock at which this rank learned of the failure. Without `shrink`, a failure of the mode also
// makes the program print "peer RANK", the rank that the failure blames.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <tutti/tutti.h>

namespace {

using tutti::Communicator;
using tutti::ReduceOp;
using tutti::Work;

long long now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void tell(const tutti::Error& error) {
  const long long when = now();
  say("failed " + std::to_string(when) + " " + std::string(to_string(error.code())) + " " +
      error.status().message());
}

// `Calls` makes every kind of collective call, with `count` elements for each rank.
class Calls {
 public:
  Calls(Communicator& comm, std::size_t count)
      : comm_(comm), p_(static_cast<std::size_t>(comm.size())), one_(count, 1), all_(count * p_, 1) {}

  void run(const std::string& kind) {
    const std::map<std::string, std::function<Work()>> calls = {
        {"all_reduce", [&] { return comm_.all_reduce(all_, ReduceOp::max); }},
        {"reduce", [&] { return comm_.reduce(all_, ReduceOp::max, root()); }},
        {"broadcast", [&] { return comm_.broadcast(all_, root()); }},
        {"all_gather", [&] { return comm_.all_gather(one_, all_); }},
        {"reduce_scatter", [&] { return comm_.reduce_scatter(all_, one_, ReduceOp::max); }},
        {"all_to_all", [&] { return comm_.all_to_all(all_); }},
        {"gather", [&] { return comm_.gather(one_, all_, root()); }},
        {"scatter", [&] { return comm_.scatter(all_, one_, root()); }},
        {"scan", [&] { return comm_.scan(one_, ReduceOp::max); }},
        {"exscan", [&] { return comm_.exscan(one_, ReduceOp::max); }},
        {"barrier", [&] { return comm_.barrier(); }},
        {"send", [&] { return ring(); }},
    };
    const auto found = calls.find(kind);
    if (found == calls.end()) throw std::invalid_argument("no call " + kind);
    found->second().wait();
    ++turn_;
  }

 private:
  int root() const { return static_cast<int>(turn_ % p_); }
  Work ring() {
    const int next = (comm_.rank() + 1) % comm_.size();
    const int previous = (comm_.rank() + comm_.size() - 1) % comm_.size();
    tutti::Transfer legs[] = {{tutti::Transfer::Direction::recv, all_, previous, 1},
                              {tutti::Transfer::Direction::send, one_, next, 1}};
    return comm_.batch(legs);
  }

  Communicator& comm_;
  std::size_t p_, turn_ = 0;
  std::vector<std::int64_t> one_, all_;
};

// Makes a different call on rank `who` than on the other ranks.
void differ(Communicator& comm, const std::string& what, int who) {
  const bool odd = comm.rank() == who;
  std::vector<float> data(1000 * static_cast<std::size_t>(comm.size()), 1);
  const auto reduce = [&](std::size_t count, tutti::DataType type, const ReduceOp& op) {
    comm.all_reduce(tutti::Buffer(data.data(), count, type), op).wait();
  };
  const auto float32 = tutti::DataType::float32;
  if (what == "kind") {
    odd ? comm.broadcast(data, 0).wait() : comm.all_reduce(data, ReduceOp::sum).wait();
  } else if (what == "size") {
    reduce(odd ? 999 : 1000, float32, ReduceOp::sum);
  } else if (what == "type") {
    reduce(1000, odd ? tutti::DataType::int32 : float32, ReduceOp::sum);
  } else if (what == "op") {
    reduce(1000, float32, odd ? ReduceOp::max : ReduceOp::sum);
  } else if (what == "root") {
    comm.reduce(data, ReduceOp::sum, odd ? 1 : 0).wait();
  } else if (what == "algorithm") {
    comm.all_reduce(data, ReduceOp::sum, {.algorithm = odd ? "ring" : "recursive_doubling"}).wait();
  } else if (what == "loop") {  // an extra call in a loop of small ones
    for (int round = 0; round < 20; ++round) {
      reduce(2, float32, ReduceOp::sum);
      comm.barrier().wait();
    }
    odd ? reduce(2, float32, ReduceOp::sum) : comm.barrier().wait();
  } else if (what == "split") {
    odd ? comm.all_reduce(data, ReduceOp::sum).wait() : static_cast<void>(comm.split(0));
  } else if (what == "order") {
    std::vector<tutti::Work> works;
    for (const bool first : {true, false})
      works.push_back(first != odd ? comm.all_reduce(data, ReduceOp::sum) : comm.all_gather(data));
    for (tutti::Work& work : works) work.wait();
  } else if (what == "way") {
    // An all_to_all_v always sends messages. A barrier uses shared memory if there is any.
    std::vector<std::uint64_t> counts(static_cast<std::size_t>(comm.size()), 1);
    std::vector<float> in(counts.size()), out(counts.size());
    odd ? comm.all_to_all_v(in, counts, out, counts).wait() : comm.barrier().wait();
  }
  for (int i = 0; i < 20; ++i) comm.barrier().wait();  // some ranks learn of the mismatch a little later
}

void hasty(Communicator& comm, int who) {
  using std::chrono::milliseconds;
  std::vector<float> data(1000);
  // When the other ranks wake up, the test has already stopped rank `who`.
  std::this_thread::sleep_for(milliseconds(comm.rank() == who ? 10'000 : 200));
  std::thread other([&] {
    std::this_thread::sleep_for(milliseconds(150));
    if (comm.rank() == 0) comm.abort("enough");
  });
  try {
    comm.all_reduce(data, ReduceOp::sum, {.timeout = milliseconds(100)}).wait();
  } catch (const tutti::Error& error) {
    say("failed " + std::to_string(now()) + " " + std::string(to_string(error.code())) + " " + error.what());
  }
  other.join();
  std::this_thread::sleep_for(milliseconds(200));
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(milliseconds(500));
  say("rested " + std::to_string((std::clock() - before) * 1000 / CLOCKS_PER_SEC));
}

void again(Communicator& comm, int who, int seconds) {
  if (comm.rank() == who) std::this_thread::sleep_for(std::chrono::seconds(seconds));
  for (int tries = 0; tries < 10; ++tries) {
    try {
      const tutti::Shrunk shrunk = comm.shrink();
      return say("shrunk " + std::to_string(shrunk.communicator.size()) + " 0 0");
    } catch (const tutti::Error& error) {
      if (error.code() != tutti::Code::timeout) throw;
    }
  }
}

// Repeats the mode's calls until a call fails.
void use(Communicator& comm, const std::vector<std::string>& words) {
  const std::string& mode = words.at(0);
  if (mode == "loop" || mode == "split") {
    auto half = mode == "split" ? comm.split(comm.rank() % 2) : std::nullopt;
    Calls calls(half ? *half : comm, std::stoul(words.at(2)));
    for (;;) calls.run(words.at(1));
  }
  if (mode == "idle") {
    while (comm.status().ok()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw tutti::Error(comm.status());
  }
  if (mode == "compute") {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(words.at(1)));
    while (comm.rank() == 0 && std::chrono::steady_clock::now() < end) {
    }
    return comm.barrier().wait();
  }
  if (mode == "late") {
    std::vector<float> data(1000);
    while (comm.rank() == std::stoi(words.at(1)) && comm.status().ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // At the end of this pause, every rank is ready or has been stopped.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    comm.all_reduce(data, ReduceOp::sum, {.timeout = std::chrono::seconds(2)}).wait();
  }
  if (mode == "hasty") hasty(comm, std::stoi(words.at(1)));
  if (mode == "again") again(comm, std::stoi(words.at(1)), std::stoi(words.at(2)));
  if (mode == "part") {
    // Every second split makes no communicator, but still takes a context number. So the numbers of
    // the contexts that are closed later have gaps.
    const int splits = words.size() > 1 ? std::stoi(words.at(1)) : 0;
    for (int i = 0; i < splits; ++i) comm.split(i % 2 == 0 ? 0 : tutti::no_color);
    // A call of shrink ends the operations of the other ranks. So all ranks first wait until all
    // splits have ended. Rank 2 waits longest, so that the leader of the shrink asks rank 2 to join
    // before rank 2 has called shrink.
    if (splits > 0) std::this_thread::sleep_for(std::chrono::seconds(comm.rank() == 2 ? 4 : 2));
    const tutti::Shrunk shrunk = comm.shrink(1);
    return say("shrunk " + std::to_string(shrunk.communicator.size()) + " 0 0");
  }
  if (mode == "leave") {
    std::vector<float> data(1000);
    if (comm.rank() == std::stoi(words.at(1))) return;
    comm.all_reduce(data, ReduceOp::sum).wait();
  }
  if (mode == "differ")
    differ(comm, words.at(1), words.size() > 2 ? std::stoi(words.at(2)) : comm.size() - 1);
  if (mode == "abort") {
    std::thread other([&] {
      if (comm.rank() != std::stoi(words.at(1))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      say("aborting " + std::to_string(now()));
      comm.abort("enough");
    });
    // Each rank waits for a message that the next rank never sends.
    std::vector<int> data(1);
    const Work never = comm.recv(data, (comm.rank() + 1) % comm.size(), 77);
    Work waiting = never;
    try {
      waiting.wait();
    } catch (...) {
      other.join();
      throw;
    }
  }
}

// Tests the survivors' communicator with an all_reduce, a split and a message.
void check(Communicator& comm) {
  const int p = comm.size(), rank = comm.rank();
  std::vector<std::int64_t> sum(5000, rank + 1);
  comm.all_reduce(sum, ReduceOp::sum).wait();
  for (const std::int64_t value : sum) {
    if (value != p * (p + 1) / 2) throw std::runtime_error("wrong sum after a shrink");
  }
  auto half = comm.split(rank % 2);
  std::int64_t count = 1;
  half->all_reduce(std::span(&count, 1), ReduceOp::sum).wait();
  if (count != (p + 1 - rank % 2) / 2) throw std::runtime_error("wrong count after a split");
  std::int64_t from = -1;
  const std::int64_t to = rank;
  Work received = comm.recv(std::span(&from, 1), (rank + 1) % p, 3);
  comm.send(std::span(&to, 1), (rank + p - 1) % p, 3).wait();
  received.wait();
  if (from != (rank + 1) % p) throw std::runtime_error("wrong message after a shrink");
}

struct Plan {
  int left = 0;
  int least = 0;
};

// Repeats the mode's calls. Shrinks the communicator after each loss of a rank, and continues with
// the survivors until at most `plan.left` ranks are left.
void survive(Communicator comm, const Plan& plan, const std::vector<std::string>& words) {
  std::string shrunk_to;
  for (;;) {
    try {
      if (!shrunk_to.empty()) {
        check(comm);
        say(shrunk_to);
        if (comm.size() <= plan.left) return;
      }
      return use(comm, words);
    } catch (const tutti::Error& error) {
      tell(error);
      if (error.code() != tutti::Code::peer_lost) return;
    }
    const long long begin = now();
    tutti::Shrunk shrunk = comm.shrink(plan.least);
    comm = std::move(shrunk.communicator);
    const long long end = now();
    shrunk_to = "shrunk " + std::to_string(comm.size()) + " " + std::to_string(shrunk.completed) + " " +
                std::to_string(end - begin);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool shrinks = words.at(0) == "shrink";
  Plan plan;
  if (shrinks) {
    plan = {std::stoi(words.at(1)), std::stoi(words.at(2))};
    words.erase(words.begin(), words.begin() + 3);
  }
  Communicator comm = tutti::init();
  say("ready");
  if (shrinks) {
    survive(std::move(comm), plan, words);
    return 0;
  }
  try {
    use(comm, words);
  } catch (const tutti::Error& error) {
    tell(error);
    say("peer " + std::to_string(error.status().peer()));
  }
  return 0;
} catch (const tutti::Error& error) {
  tell(error);
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
