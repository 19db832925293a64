#include "transport/verbs/rail.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>

#include <tutti/log.h>

#include "core/error_text.h"
#include "core/fork_guard.h"

namespace tutti::verbs {
namespace {

// At most this many completions are taken at a time.
constexpr int batch = 16;
// A completion queue with fewer entries would be of no use.
constexpr std::uint64_t fewest_entries = 64;

bool set_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0;
}

}  // namespace

// `Completions` is told when a completion has arrived while the driver slept.
struct Rail::Completions final : DescriptorHandler {
  explicit Completions(Rail& of) : rail(of) {}
  void on_ready(std::uint32_t events) override {
    ibv_cq* queue = nullptr;
    void* context = nullptr;
    if (rail.functions().get_cq_event(rail.channel_, &queue, &context) != 0) return rail.on_no_event(events);
    rail.functions().ack_cq_events(queue, 1);
    rail.armed_ = false;
    rail.poll();
  }
  Rail& rail;
};

// `Events` is told of events of the device.
struct Rail::Events final : DescriptorHandler {
  explicit Events(Rail& of) : rail(of) {}
  void on_ready(std::uint32_t events) override {
    ibv_async_event event = {};
    if (rail.functions().get_async_event(&rail.port_.device->context(), &event) != 0)
      return rail.on_no_event(events);
    // A queue pair cannot be destroyed before its events are acknowledged. `on_event` may destroy queue
    // pairs, so the acknowledgement comes first.
    rail.functions().ack_async_event(&event);
    rail.on_event(event);
  }
  Rail& rail;
};

Rail::Rail(DevicePort port, SharedDomain domain) : port_(std::move(port)), domain_(std::move(domain)) {}

Result<std::unique_ptr<Rail>> Rail::create(const Functions& functions, DevicePort port) {
  Result<SharedDomain> domain = Domain::create(functions, port.device);
  if (!domain.ok()) return domain.status().with_context(port.name);
  return std::unique_ptr<Rail>(new Rail(std::move(port), *std::move(domain)));
}

Rail::~Rail() {
  if (queue_ != nullptr) functions().destroy_cq(queue_);
  if (channel_ != nullptr) {
    release_descriptor(channel_->fd);
    functions().destroy_comp_channel(channel_);
  }
}

Status Rail::start(EventLoop& loop, std::uint64_t entries) {
  ibv_context& context = port_.device->context();
  const auto failed = [&](const std::string& what) {
    return Status(Code::resource_exhausted, port_.name + " gives no " + what + ": " + error_text(errno));
  };
  channel_ = functions().create_comp_channel(&context);
  if (channel_ == nullptr) return failed("completion channel");
  guard_descriptor(channel_->fd);
  room_ = std::min<std::uint64_t>(entries, static_cast<std::uint64_t>(std::max(port_.limits.max_cqe, 1)));
  // With a smaller queue, fewer peers can be connected over verbs. For the other peers, this rank uses the
  // next transport.
  for (; queue_ == nullptr && room_ >= fewest_entries; room_ /= queue_ == nullptr ? 2 : 1)
    queue_ = functions().create_cq(&context, static_cast<int>(room_), nullptr, channel_, 0);
  if (queue_ == nullptr) return failed("completion queue");
  entries_ = room_;
  if (!set_nonblocking(channel_->fd) || !set_nonblocking(context.async_fd)) return failed("descriptor");
  return watch(loop);
}

Status Rail::watch(EventLoop& loop) {
  auto completions = std::make_unique<Completions>(*this);
  Status watched = loop.watch(channel_->fd, EPOLLIN, *completions);
  if (!watched.ok()) return watched;
  auto events = std::make_unique<Events>(*this);
  watched = loop.watch(port_.device->context().async_fd, EPOLLIN, *events);
  if (!watched.ok()) {
    loop.unwatch(channel_->fd);
    return watched;
  }
  loop_ = &loop;
  completions_ = std::move(completions);
  events_ = std::move(events);
  return {};
}

void Rail::stop() {
  if (loop_ == nullptr) return;
  loop_->unwatch(channel_->fd);
  loop_->unwatch(port_.device->context().async_fd);
  loop_ = nullptr;
}

ibv_qp* Rail::create_queue_pair(ibv_qp_init_attr& attributes, QueueUser& user) {
  // A completion queue that has overflowed cannot be used any more. So each queue pair reserves room for all
  // of its completions.
  const std::uint64_t need = attributes.cap.max_send_wr + attributes.cap.max_recv_wr;
  if (loop_ == nullptr || need > room_) {
    errno = loop_ == nullptr ? ENODEV : ENOSPC;
    return nullptr;
  }
  attributes.send_cq = queue_;
  attributes.recv_cq = queue_;
  ibv_qp* const made = functions().create_qp(domain_->raw(), &attributes);
  if (made == nullptr) return nullptr;
  room_ -= need;
  users_[made->qp_num] = {&user, need};
  return made;
}

void Rail::destroy_queue_pair(ibv_qp* queue_pair) {
  const auto found = users_.find(queue_pair->qp_num);
  room_ += found->second.need;
  users_.erase(found);
  if (const int error = functions().destroy_qp(queue_pair))
    log::warn("verbs: a queue pair of ", port_.name, " cannot be destroyed: ", error_text(error));
}

bool Rail::poll() { return take() > 0; }

void Rail::drain() {
  // At most as many completions have arrived as the queue has entries. If a batch is not full, the queue is
  // empty.
  for (std::uint64_t left = entries_; left > 0;) {
    const std::size_t taken = take();
    if (taken < batch) return;
    left -= std::min<std::uint64_t>(left, taken);
  }
}

// Handles one batch of completions, and returns how many there were.
std::size_t Rail::take() {
  if (!in_use()) return 0;
  std::array<ibv_wc, batch> arrived;
  const int count = ibv_poll_cq(queue_, batch, arrived.data());
  if (count < 0) fail_all("its completion queue cannot be read");
  for (int i = 0; i < count; ++i) {
    // A completion may destroy any queue pair. Completions of such a queue pair are ignored.
    const auto user = users_.find(arrived[static_cast<std::size_t>(i)].qp_num);
    if (user != users_.end()) user->second.user->on_completion(arrived[static_cast<std::size_t>(i)]);
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

bool Rail::arm() {
  if (!in_use()) return false;
  if (!armed_) armed_ = ibv_req_notify_cq(queue_, 0) == 0;
  // A completion that arrived before the request for an event causes none, so this function polls once more.
  return poll();
}

void Rail::on_event(const ibv_async_event& event) {
  const std::string what = functions().event_type_str(event.event_type);
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      if (const auto user = users_.find(event.element.qp->qp_num); user != users_.end())
        user->second.user->on_queue_error(what);
      return;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      log::warn("verbs: ", port_.name, " has failed: ", what);
      return fail_all(what);
    case IBV_EVENT_PORT_ERR:  // of any port of the device
      if (event.element.port_num == port_.number) on_lost_link();
      return;
    default:
      log::debug("verbs: ", port_.name, ": ", what);
  }
}

// A card sends packets again until its retries are used up, so a short interruption does no harm. A Soft-RoCE
// device sends nothing again: its next request fails. But if an earlier request is still unacknowledged, the
// kernel (6.1) does not repeat that request, and does not report that either request has failed. So the
// connections must be ended here.
void Rail::on_lost_link() {
  log::warn("verbs: ", port_.name, " has lost its link");
  if (port_.is_soft_roce()) fail_all("the device has lost its link");
}

// The descriptors of a removed device report an error for ever, which would keep the driver busy. So this
// function stops watching them.
void Rail::on_no_event(std::uint32_t events) {
  if ((events & (EPOLLERR | EPOLLHUP)) == 0 || loop_ == nullptr) return;
  stop();
  log::warn("verbs: ", port_.name, " has been removed");
  fail_all("the device has been removed");
}

void Rail::fail_all(const std::string& why) {
  std::vector<std::uint32_t> numbers;
  for (const auto& [number, user] : users_) numbers.push_back(number);
  for (const std::uint32_t number : numbers) {
    if (const auto user = users_.find(number); user != users_.end()) user->second.user->on_queue_error(why);
  }
}

}  // namespace tutti::verbs
