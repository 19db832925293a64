// Uses the classes and functions of <tutti/tutti.h> and <tutti/store.h> as programs do, in a world
// of one rank. A change to tutti that stops this file from compiling breaks users' programs, and
// belongs in the changelog.
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/store.h>
#include <tutti/tutti.h>

namespace {

using namespace std::chrono_literals;
using tutti::Buffer;
using tutti::CallOptions;
using tutti::Communicator;
using tutti::ConstBuffer;
using tutti::DataType;
using tutti::ReduceOp;

void expect(bool good, const char* what) {
  if (!good) throw tutti::Error(tutti::Status(tutti::Code::internal, what));
}

void expect_code(tutti::Code code, const std::function<void()>& call) {
  try {
    call();
  } catch (const tutti::Error& error) {
    expect(error.code() == code, error.what());
    return;
  }
  expect(false, "a call that cannot succeed");
}

void add(const void* left, const void* right, void* out, std::size_t count, DataType, void*) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<int*>(out)[i] = static_cast<const int*>(left)[i] + static_cast<const int*>(right)[i];
  }
}

void use_types() {
  static_assert(tutti::size_of(DataType::bfloat16) == 2 && tutti::is_floating(DataType::bfloat16));
  static_assert(tutti::data_type_count == 13 && tutti::collective_kind_count == 18 && tutti::max_ranks > 0);
  static_assert(tutti::DataTypeOf<std::byte>::value == DataType::uint8);
  static_assert(tutti::ElementRange<std::vector<double>>);
  expect(tutti::parse_data_type(tutti::to_string(DataType::float8_e4m3)) == DataType::float8_e4m3, "types");
  const tutti::CollectiveKind kind = tutti::CollectiveKind::all_reduce;
  expect(tutti::parse_collective_kind(tutti::to_string(kind)) == kind, "kinds");
  expect(tutti::is_reduction(kind) && !tutti::has_root(kind), "properties of kinds");
  expect(float(tutti::float16(1.5F)) == 1.5F && float(tutti::bfloat16(1.5F)) == 1.5F, "two bytes");
  expect(float(tutti::float8_e4m3(1.5F)) == 1.5F && float(tutti::float8_e5m2(1.5F)) == 1.5F, "one byte");
  expect(tutti::float16::from_bits(0x3c00).bits() == 0x3c00, "bits");
  expect(!tutti::version().empty() && !tutti::build().empty(), "version");
}

void use_operations() {
  const ReduceOp mean = ReduceOp::premultiplied_sum(0.5);
  expect(mean.kind() == ReduceOp::Kind::premultiplied_sum && mean.factor() == 0.5, "premultiplied sum");
  const ReduceOp sum = ReduceOp::user("add", add, true);
  expect(sum.user_function()->function == add && sum.commutative() && !sum.name().empty(), "user operation");
  expect(!ReduceOp::avg.supports(DataType::boolean) && !(ReduceOp::min == ReduceOp::max), "operations");
  expect(tutti::parse_reduce_op(tutti::to_string(ReduceOp::Kind::bit_xor)) == ReduceOp::bit_xor, "names");
}

void use_status() {
  const tutti::Status lost(tutti::Code::peer_lost, "gone", 3);
  expect(!lost.ok() && lost.peer() == 3 && lost.message() == "gone", "status");
  expect(!lost.to_string().empty() && lost.with_context("here").code() == lost.code(), "context");
  expect(tutti::to_string(tutti::Code::peer_lost) == "peer_lost" && tutti::Status().ok(), "codes");
  expect(tutti::Error(lost).status().peer() == 3 && tutti::Error(lost).code() == lost.code(), "error");
  tutti::Result<std::string> text(std::string("text"));
  expect(text.ok() && text.status().ok() && *text == "text" && text->size() == 4, "result");
  expect(std::move(text).take() == "text", "taken result");
}

void use_buffers() {
  std::vector<float> values(4);
  const Buffer range(values), pointer(values.data(), values.size(), DataType::float32);
  const ConstBuffer from_buffer(range), constant(std::as_const(values)),
      raw(values.data(), 4, DataType::float32);
  expect(range.bytes() == 16 && pointer.count == range.count && from_buffer.data == range.data, "buffers");
  expect(constant.type == DataType::float32 && raw.bytes() == 16, "constant buffers");
  expect(Buffer().count == 0 && ConstBuffer().count == 0, "empty buffers");
  const tutti::Memory device = tutti::Memory::cuda(3);
  const Buffer there(values.data(), 4, DataType::float32, device);
  expect(there.memory == device && ConstBuffer(there).memory.device() == 3, "memory of a device");
  expect(range.memory == tutti::Memory() && range.memory.kind() == tutti::Memory::Kind::host, "host memory");
  expect(!tutti::to_string(device).empty() && tutti::Memory::max_device > 3, "names of memory");
}

void use_reductions(Communicator& comm) {
  const std::vector<int> in = {1, 2, 3};
  std::vector<int> out(3);
  const std::vector<std::uint64_t> counts = {3};
  const CallOptions options = {.timeout = 60s, .algorithm = {}, .stream = nullptr, .region = nullptr};
  comm.all_reduce(out, ReduceOp::sum).wait();
  comm.all_reduce(in, out, ReduceOp::user("add", add, true), options).wait();
  expect(out == in, "all_reduce");
  comm.reduce(out, ReduceOp::product, 0).wait();
  comm.reduce(in, out, ReduceOp::min, 0, options).wait();
  comm.reduce_scatter(in, out, ReduceOp::max, options).wait();
  comm.reduce_scatter(out, ReduceOp::avg).wait();
  comm.reduce_scatter_v(in, out, counts, ReduceOp::bit_or, options).wait();
  comm.scan(out, ReduceOp::bit_and).wait();
  comm.scan(in, out, ReduceOp::bit_xor, options).wait();
  comm.exscan(out, ReduceOp::sum).wait();
  comm.exscan(in, out, ReduceOp::sum, options).wait();
  expect(out == in, "reductions");
}

void use_movements(Communicator& comm) {
  const std::vector<int> in = {1, 2, 3};
  std::vector<int> out(3);
  const std::vector<std::uint64_t> counts = {3};
  const CallOptions options = {.timeout = 60s, .algorithm = {}};
  comm.all_gather(in, out, options).wait();
  comm.all_gather(out).wait();
  comm.all_gather_v(in, out, counts, options).wait();
  comm.all_to_all(in, out, options).wait();
  comm.all_to_all(out).wait();
  comm.all_to_all_v(in, counts, out, counts, options).wait();
  comm.gather(in, out, 0, options).wait();
  comm.gather_v(in, out, counts, 0, options).wait();
  comm.scatter(in, out, 0, options).wait();
  comm.scatter_v(in, counts, out, 0, options).wait();
  comm.broadcast(out, 0, options).wait();
  comm.barrier(options).wait();
  expect(out == in, "movements");
}

void use_messages(Communicator& comm) {
  const std::array<double, 2> in = {1, 2};
  std::array<double, 2> out = {};
  tutti::Work receive = comm.recv(out, tutti::any_rank, tutti::any_tag);
  comm.send(in, 0, 7, {.timeout = 60s}).wait();
  receive.wait();
  const tutti::Work::Received received = receive.received();
  expect(out == in && received.source == 0 && received.tag == 7 && received.bytes == sizeof in, "messages");

  std::array<double, 2> copy = in;
  std::array<tutti::Transfer, 2> transfers;
  transfers[0] = {.direction = tutti::Transfer::Direction::recv, .buffer = out, .peer = 0, .tag = 8};
  transfers[1] = {.direction = tutti::Transfer::Direction::send, .buffer = copy, .peer = 0, .tag = 8};
  tutti::Work batch = comm.batch(transfers), same = batch;
  bool called = false;
  while (!batch.wait_for(1s)) {
  }
  same.then([&](const tutti::Status& status) { called = status.ok(); });
  expect(called && same.done() && same.status().ok(), "batch");
  same.wait_on(nullptr);  // no stream has to wait for an operation that has ended
}

void use_groups(Communicator& comm) {
  std::optional<Communicator> part = comm.split(0, 0);
  expect(part && *part && !comm.split(tutti::no_color), "split");
  const std::array<int, 1> members = {0};
  Communicator group = comm.group(members, 1, {.timeout = 60s});
  expect(group.size() == 1 && comm.group(members).rank() == 0, "group");
  tutti::Allocation memory = comm.allocate(4096);
  expect(memory.data() && memory.bytes() == 4096 && memory.as<float>().size() == 1024, "allocation");
  static_cast<void>(memory.registered());
  const tutti::Registration registration = comm.register_memory(memory.as<std::byte>());
  const Communicator::Statistics statistics = comm.statistics();
  expect(statistics.operations > 0 && statistics.registered_operations == 0, "statistics");
  expect(!comm.describe(0).empty() && comm.descriptor() >= 0, "descriptions");
  static_cast<void>(comm.progress());
  tutti::Shrunk shrunk = comm.shrink();
  expect(shrunk.communicator.size() == 1 && shrunk.completed > 0, "shrink");
  part->abort("the end");
  expect(part->status().code() == tutti::Code::aborted, "abort");
}

// `ClosedStore` shows that a program can derive its own class from `Store`.
class ClosedStore : public tutti::Store {
 public:
  tutti::Status set(std::string_view, std::string_view, tutti::Deadline) override { return closed(); }
  tutti::Result<std::string> get(std::string_view, tutti::Deadline) override { return closed(); }
  tutti::Status wait(std::span<const std::string>, tutti::Deadline) override { return closed(); }
  tutti::Result<std::int64_t> add(std::string_view, std::int64_t, tutti::Deadline) override {
    return closed();
  }
  tutti::Result<std::string> compare_set(std::string_view, std::string_view, std::string_view,
                                         tutti::Deadline) override {
    return closed();
  }
  tutti::Result<bool> delete_key(std::string_view, tutti::Deadline) override { return closed(); }
  tutti::Result<bool> exists(std::string_view, tutti::Deadline) override { return closed(); }

 private:
  static tutti::Status closed() { return {tutti::Code::unsupported, "the store is closed"}; }
};

}  // namespace

int main() {
  try {
    use_types();
    use_operations();
    use_status();
    use_buffers();
    tutti::InitOptions options = {.timeout = 60s, .transports = {"tcp"}};
    const tutti::Placement place = tutti::placement(options);
    expect(place.rank == 0 && place.world_size == 1, "placement");
    Communicator comm = tutti::init(options);
    expect(comm && comm.rank() == 0 && comm.size() == 1, "communicator");
    use_reductions(comm);
    use_movements(comm);
    use_messages(comm);
    use_groups(comm);
    expect_code(tutti::Code::invalid_argument, [] { tutti::init(std::string_view("nowhere://")); });
    expect_code(tutti::Code::unsupported,
                [&] { tutti::init(std::make_shared<ClosedStore>(), 0, 1, options); });
    return 0;
  } catch (const tutti::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
