#include "tests/verbs/watched_library.h"

#include <algorithm>
#include <iterator>

namespace tutti::test {
namespace {

constexpr std::size_t header_bytes = 64;  // of a frame

}  // namespace

WatchedLibrary::WatchedLibrary()
    : library_([this](const ibv_qp& pair, const ibv_send_wr& request) { count(pair, request); }) {
  current = this;
  add_object_calls();
  add_pair_calls();
}

WatchedLibrary::~WatchedLibrary() { current = nullptr; }

void WatchedLibrary::add_object_calls() {
  library_.functions().reg_mr = [](ibv_pd* domain, void* address, std::size_t bytes, int access) {
    ibv_mr* const region = (*current->library_.untapped().reg_mr)(domain, address, bytes, access);
    const std::lock_guard lock(current->mutex_);
    if (region != nullptr) ++current->usage_.regions, ++current->usage_.registrations;
    return region;
  };
  library_.functions().dereg_mr = [](ibv_mr* region) {
    const int error = current->library_.untapped().dereg_mr(region);
    const std::lock_guard lock(current->mutex_);
    if (error == 0) --current->usage_.regions;
    return error;
  };
  library_.functions().create_qp = [](ibv_pd* domain, ibv_qp_init_attr* wanted) {
    ibv_qp* const pair = current->library_.untapped().create_qp(domain, wanted);
    const std::lock_guard lock(current->mutex_);
    if (pair != nullptr) ++current->usage_.pairs;
    return pair;
  };
}

// These calls hold the lock while they run, so that no queue pair is destroyed while `break_pair` uses it.
void WatchedLibrary::add_pair_calls() {
  library_.functions().modify_qp = [](ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
    const std::lock_guard lock(current->mutex_);
    const int error = current->library_.untapped().modify_qp(pair, attributes, mask);
    if (error == 0 && attributes->qp_state == IBV_QPS_RTS) current->connected_.insert(pair);
    return error;
  };
  library_.functions().destroy_qp = [](ibv_qp* pair) {
    const std::lock_guard lock(current->mutex_);
    current->connected_.erase(pair);
    current->writers_.erase(pair);
    const int error = current->library_.untapped().destroy_qp(pair);
    if (error == 0) --current->usage_.pairs;
    return error;
  };
}

Usage WatchedLibrary::usage() {
  const std::lock_guard lock(mutex_);
  Usage usage = usage_;
  usage.writers = static_cast<int>(writers_.size());
  return usage;
}

void WatchedLibrary::expect_from(std::span<const std::byte> memory) {
  const std::lock_guard lock(mutex_);
  expected_.push_back(memory);
}

bool WatchedLibrary::break_pair(std::size_t choice) {
  const std::lock_guard lock(mutex_);
  if (connected_.empty()) return false;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  const auto chosen = static_cast<std::ptrdiff_t>(choice % connected_.size());
  return library_.untapped().modify_qp(*std::next(connected_.begin(), chosen), &attributes, IBV_QP_STATE) ==
         0;
}

void WatchedLibrary::count(const ibv_qp& pair, const ibv_send_wr& request) {
  const bool write = request.opcode == IBV_WR_RDMA_WRITE || request.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (!write && request.opcode != IBV_WR_SEND_WITH_IMM) return;
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (int i = 0; i < request.num_sge; ++i) {
    const ibv_sge& piece = request.sg_list[i];
    bytes += piece.length;
    if (write) (is_expected(piece) ? usage_.in_place : usage_.elsewhere) += piece.length;
  }
  if (write) {
    usage_.written[pair.context->device->name] += bytes;
    writers_.insert(&pair);
    return;
  }
  ++usage_.packets;
  if (bytes > header_bytes) ++usage_.messages;
  if ((request.send_flags & IBV_SEND_INLINE) != 0) ++usage_.inlined;
}

bool WatchedLibrary::is_expected(const ibv_sge& piece) const {
  return std::ranges::any_of(expected_, [&](std::span<const std::byte> memory) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return piece.addr >= begin && piece.addr + piece.length <= begin + memory.size();
  });
}

}  // namespace tutti::test
