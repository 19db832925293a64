// This Python module is for a torch that was built without CUDA, and gives it tensors on CUDA
// devices. The devices are those of the fake CUDA (tests/support/fake_cuda.h): a stream is a
// thread, and the host cannot access the devices' memory. The module registers the same parts as
// torch's build for CUDA: streams and events (fake_streams.cc), an allocator (fake_memory.cc), and a
// few kernels (fake_kernels.cc). This file has the functions that tests call.
#include <chrono>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/utils/pybind.h>

#include "tests/support/fake_cuda.h"
#include "tests/torch/fake_kernels.h"
#include "tests/torch/fake_memory.h"
#include "tests/torch/fake_streams.h"

namespace fake_device {
namespace {

at::Tensor to_device(const at::Tensor& tensor, int device) {
  const at::Tensor made =
      at::empty_strided(tensor.sizes(), tensor.strides(),
                        tensor.options().device(Device(at::kCUDA, static_cast<DeviceIndex>(device))));
  made.copy_(tensor);
  return made;
}

std::mutex holds_mutex;
std::set<int> holds;  // the holds that have not ended
int last_hold = 0;

bool is_held(int number) {
  const std::lock_guard lock(holds_mutex);
  return holds.contains(number);
}

// Makes the current stream of a device wait until the hold is released. Returns the number of the hold.
int hold(int device) {
  const std::lock_guard lock(holds_mutex);
  const int number = ++last_hold;
  holds.insert(number);
  launch(Device(at::kCUDA, static_cast<DeviceIndex>(device)), [number] {
    while (is_held(number)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  return number;
}

// Ends one hold, or all holds if no number is given.
void release(std::optional<int> number) {
  const std::lock_guard lock(holds_mutex);
  if (number) {
    holds.erase(*number);
  } else {
    holds.clear();
  }
}

// Begins to capture a device's current stream, which must not be the default stream. `end_capture` ends
// the capture and drops its graph.
void begin_capture(int device) {
  const Stream stream = current_stream(Device(at::kCUDA, static_cast<DeviceIndex>(device)));
  check(cuStreamBeginCapture_v2(handle_of(stream), 0), "cuStreamBeginCapture");
}

void end_capture(int device) {
  const Stream stream = current_stream(Device(at::kCUDA, static_cast<DeviceIndex>(device)));
  CUgraph_st* graph = nullptr;
  check(cuStreamEndCapture(handle_of(stream), &graph), "cuStreamEndCapture");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
}

// Returns the present content of the tensor's memory, without waiting for streams.
at::Tensor peek(const at::Tensor& tensor) { return seen_by_stream(tensor).clone(); }

c10::StreamId use_stream(int device, c10::StreamId id) {
  return guard().exchangeStream(stream_of(static_cast<DeviceIndex>(device), id)).id();
}

// Returns the streams that torch knows as users of the tensor's memory.
std::vector<c10::StreamId> users(const at::Tensor& tensor) { return users_of(tensor.storage().data_ptr()); }

void synchronize(int device) {
  guard().synchronizeStream(current_stream(Device(at::kCUDA, static_cast<DeviceIndex>(device))));
}

}  // namespace
}  // namespace fake_device

PYBIND11_MODULE(fake_device, module) {
  namespace py = pybind11;
  using namespace fake_device;
  using Released = py::call_guard<py::gil_scoped_release>;
  module.def("start", &start, py::arg("devices"), Released());
  module.def("to_device", &to_device, py::arg("tensor"), py::arg("device"), Released());
  module.def("hold", &hold, py::arg("device"), Released());
  module.def("release", &release, py::arg("hold") = py::none());
  module.def("begin_capture", &begin_capture, py::arg("device"));
  module.def("end_capture", &end_capture, py::arg("device"));
  module.def("peek", &peek, py::arg("tensor"), Released());
  module.def("replace_storage", [](py::handle storage, std::size_t bytes) {
    replace(*torch::createStorage(storage.ptr()).unsafeGetStorageImpl(), bytes);
  });
  module.def("set_device",
             [](int device) { guard().setDevice(Device(at::kCUDA, static_cast<DeviceIndex>(device))); });
  module.def("new_stream", [](int device) { return add_stream(static_cast<DeviceIndex>(device)); });
  module.def("use_stream", &use_stream, py::arg("device"), py::arg("stream"));
  module.def("users", &users, py::arg("tensor"));
  module.def("pool", [] {
    std::vector<c10::StreamId> pool(pool_size);
    std::iota(pool.begin(), pool.end(), 1);
    return pool;
  });
  module.def("synchronize", &synchronize, py::arg("device"), Released());
  module.def("device_bytes", [] { return fake_cuda_counts().device_bytes; });
}
