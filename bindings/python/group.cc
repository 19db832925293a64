#include "bindings/python/group.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <tutti/init.h>

#include "bindings/python/errors.h"

namespace tutti::python {

namespace {

// An interrupted call may take this long to notify the other ranks.
constexpr std::chrono::milliseconds parting{3000};

// Returns the groups that are open. The GIL protects the list.
std::vector<Group*>& open_groups() {
  static auto* const all = new std::vector<Group*>;
  return *all;
}

// Calls `make` in a way that Ctrl-C can interrupt. Makes a Group from the communicator that `make`
// returns.
template <class Make>
std::unique_ptr<Group> new_group(Make make, const std::function<void()>& give_up) {
  const auto made = held_without_gil(std::optional<Communicator>());
  interruptibly([made, make] { *made = make(); }, give_up);
  return *made ? std::make_unique<Group>(*std::move(*made)) : nullptr;
}

// Returns a function for the argument `give_up` of `interruptibly`, for blocking collectives of
// `communicator`. It aborts the communicator, so that the other ranks stop waiting, too.
std::function<void()> aborting(const std::shared_ptr<Communicator>& communicator) {
  return [communicator] { communicator->abort("interrupted"); };
}

std::unique_ptr<Group> split(Group& self, std::optional<int> color, int key) {
  const auto communicator = self.open();
  const int group = color.value_or(no_color);
  return new_group([communicator, group, key] { return communicator->split(group, key); },
                   aborting(communicator));
}

std::unique_ptr<Group> group_of(Group& self, const std::vector<int>& ranks, int key,
                                std::optional<double> timeout) {
  const auto communicator = self.open();
  const CallOptions options{.timeout = limit(timeout)};
  return new_group(
      [communicator, ranks, key, options]() -> std::optional<Communicator> {
        return communicator->group(ranks, key, options);
      },
      aborting(communicator));
}

nb::object shrink(Group& self, int min_size) {
  const auto communicator = self.open();
  const auto completed = std::make_shared<std::uint64_t>(0);
  const auto make = [communicator, completed, min_size]() -> std::optional<Communicator> {
    Shrunk shrunk = communicator->shrink(min_size);
    *completed = shrunk.completed;
    return std::move(shrunk.communicator);
  };
  std::unique_ptr<Group> group = new_group(make, {});  // `abort` does not end a shrink
  return nb::make_tuple(nb::cast(std::move(group)), *completed);
}

nb::dict statistics(const Group& self) {
  const auto communicator = self.open();
  Communicator::Statistics all;
  {
    const nb::gil_scoped_release released;
    all = communicator->statistics();
  }
  nb::dict told;
  told["operations"] = all.operations;
  told["registered_operations"] = all.registered_operations;
  told["messages_sent"] = all.messages_sent;
  told["messages_received"] = all.messages_received;
  told["frames_sent"] = all.frames_sent;
  told["bytes_sent"] = all.bytes_sent;
  told["bytes_in_place"] = all.bytes_in_place;
  told["bytes_received"] = all.bytes_received;
  told["connections"] = all.connections;
  return told;
}

void abort(Group& self, const std::string& reason) {
  const auto communicator = self.open();
  const nb::gil_scoped_release released;
  communicator->abort(reason);
}

bool progress(Group& self) {
  const auto communicator = self.open();
  const nb::gil_scoped_release released;
  return communicator->progress();
}

std::string describe(const Group& self, int rank) {
  if (rank < 0 || rank >= self.open()->size())
    throw Error(Status(Code::invalid_argument, "there is no rank " + std::to_string(rank)));
  return self.open()->describe(rank);
}

using Text = std::optional<std::string>;

InitOptions init_options(const Text& url, std::optional<int> rank, std::optional<int> world_size) {
  InitOptions options;
  options.url = url.value_or("");
  options.rank = rank;
  options.world_size = world_size;
  return options;
}

std::unique_ptr<Group> init_group(const Text& url, std::optional<int> rank, std::optional<int> world_size,
                                  std::optional<double> timeout, const std::vector<std::string>& transports) {
  InitOptions options = init_options(url, rank, world_size);
  options.timeout = limit(timeout);
  options.transports = transports;
  const auto interrupted = std::make_shared<std::atomic<bool>>(false);
  options.interrupted = [interrupted] { return interrupted->load(); };
  return new_group([options]() -> std::optional<Communicator> { return tutti::init(options); },
                   [interrupted] { *interrupted = true; });
}

nb::object placement_of(const Text& url, std::optional<int> rank, std::optional<int> world_size) {
  const Placement here = placement(init_options(url, rank, world_size));
  return nb::make_tuple(here.rank, here.world_size);
}

}  // namespace

How::How(const nb::kwargs& options) {
  for (const auto& [key, value] : options) {
    const char* const name = nb::borrow<nb::str>(key).c_str();
    if (!take(name, value)) throw nb::type_error((std::string("wrong option or value: ") + name).c_str());
  }
}

bool How::take(std::string_view name, nb::handle value) {
  if (name == "timeout") return nb::try_cast(value, timeout_);
  if (name == "algorithm") return nb::try_cast(value, algorithm_);
  if (name == "stream") return nb::try_cast(value, stream_);
  return name == "region" && nb::try_cast(value, region_);
}

How::operator CallOptions() const {
  CallOptions options;
  options.timeout = limit(timeout_);
  if (algorithm_) options.algorithm = *algorithm_;
  options.stream = reinterpret_cast<void*>(stream_.value_or(0));
  options.region = reinterpret_cast<const void*>(region_.value_or(0));
  return options;
}

Group::Group(Communicator communicator) : communicator_(held_without_gil(std::move(communicator))) {
  open_groups().push_back(this);
}

Group::~Group() { close(); }

std::shared_ptr<Communicator> Group::open() const {
  if (communicator_ == nullptr) throw Error(Status(Code::invalid_argument, "the communicator is closed"));
  return communicator_;
}

void Group::close() {
  if (communicator_ == nullptr) return;
  std::erase(open_groups(), this);
  communicator_.reset();
  release_finished();
}

void Group::close_all() {
  const std::vector<Group*> all = open_groups();
  for (Group* group : all) group->close();
}

void interruptibly(std::function<void()> body, const std::function<void()>& give_up) {
  std::packaged_task<void()> task(std::move(body));
  std::future<void> outcome = task.get_future();
  std::thread thread(std::move(task));
  for (bool over = false; !over;) {
    {
      const nb::gil_scoped_release released;
      over = outcome.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready;
    }
    if (PyErr_CheckSignals() == 0) continue;
    nb::python_error interrupt;
    {
      const nb::gil_scoped_release released;
      if (give_up) {
        give_up();
        over = outcome.wait_for(parting) == std::future_status::ready;
      }
    }
    if (over) {
      thread.join();
    } else {
      thread.detach();
    }
    throw std::move(interrupt);
  }
  thread.join();
  outcome.get();
}

namespace {

// Binds the methods that make another communicator.
void bind_successors(nb::class_<Group>& group) {
  group
      .def("split", &split, nb::arg("color").none(), nb::arg("key") = 0,
           "Makes one communicator for each color: the ranks with equal `color`, ordered by `key`, then by "
           "rank. Returns None on ranks whose color is None. Collective and blocking.")
      .def("group", &group_of, nb::arg("ranks"), nb::arg("key") = 0, nb::arg("timeout") = nb::none(),
           "Makes a communicator of the listed ranks, in this order. Only the listed ranks call it, and all "
           "of them pass the same list. Blocking.")
      .def("shrink", &shrink, nb::arg("min_size") = 0,
           "After a rank was lost: returns the communicator of the survivors, and how many collectives of "
           "the old communicator all survivors have completed. Every survivor must call it. Blocking.");
}

}  // namespace

void bind_group(nb::module_& module) {
  nb::class_<Group> group(
      module, "Communicator", nb::is_weak_referenceable(),
      "A group of ranks that compute together. Every rank calls the same collectives in the same order; each "
      "call starts at once, takes timeout= (seconds), algorithm= (a name) and stream= (of CUDA), and returns "
      "a Work. The program must not touch the arrays until the operation has ended.");
  group
      .def_prop_ro(
          "rank", [](const Group& self) { return self.open()->rank(); },
          "This process's number in the group, from 0.")
      .def_prop_ro(
          "size", [](const Group& self) { return self.open()->size(); }, "The number of ranks.")
      .def_prop_ro("closed", &Group::closed,
                   "Whether `close` was called. After `close`, no other method may be called.")
      .def(
          "error", [](const Group& self) { return error_object(self.open()->status()); },
          "The first cause of failure; None if it has not failed.")
      .def("close", &Group::close,
           "Closes this communicator. Afterwards only `closed` and `close` may be used. Operations that are "
           "still in flight end with AbortedError, here and on the other ranks. So wait for all operations "
           "first. The last communicator of an `init` also tells the other ranks that this rank leaves, and "
           "blocks until they can know it, for two seconds at most. All of this happens later if memory of "
           "`allocate` or a result of `register_memory` is still held: when the last of these is released.")
      .def("describe", &describe, nb::arg("rank"), "Returns a text such as 'rank 3 (host b, pid 4711)'.")
      .def("abort", &abort, nb::arg("reason") = "no reason given",
           "Ends all pending and later operations with AbortedError, on all ranks, at once. Any thread may "
           "call it.")
      .def("statistics", &statistics, "Returns counts of operations, messages, bytes and connections.")
      .def(
          "descriptor", [](const Group& self) { return self.open()->descriptor(); },
          "Returns a descriptor for event loops. When it is readable, there is something to do: call "
          "`progress`.")
      .def("progress", &progress,
           "Makes progress without waiting. Returns whether there was anything to do.");
  bind_successors(group);
  bind_reductions(group);
  bind_movements(group);
  bind_messages(group);
}

void bind_functions(nb::module_& module) {
  module.def("init", &init_group, nb::arg("url") = nb::none(), nb::arg("rank") = nb::none(),
             nb::arg("world_size") = nb::none(), nb::arg("timeout") = nb::none(),
             nb::arg("transports") = std::vector<std::string>());
  module.def("placement", &placement_of, nb::arg("url") = nb::none(), nb::arg("rank") = nb::none(),
             nb::arg("world_size") = nb::none());
  module.def("close_all", &Group::close_all);
}

}  // namespace tutti::python
