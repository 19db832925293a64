#include "transport/nccl/offload.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transport/nccl/arithmetic.h"
#include "transport/nccl/session.h"

namespace tutti::nccl {

namespace {

constexpr std::chrono::microseconds ready_interval{200};
constexpr std::size_t uuid_digits = 32;

// NCCL takes ranks with different host ids for ranks on different hosts, and lets these use the same device.
std::string host_id() {
  const char* const set = std::getenv("NCCL_HOSTID");
  if (set == nullptr) return "default host";
  std::vector<std::uint64_t> letters;
  for (const char* letter = set; *letter != '\0'; ++letter)
    letters.push_back(static_cast<unsigned char>(*letter));
  return "host " + std::to_string(digest_of(letters));
}

const std::string& facts_of(const PeerInfo& peer) { return peer.offloads.at("nccl"); }

std::string version_in(const std::string& facts) { return facts.substr(0, facts.find(',')); }

// Returns ok if no device is used by two ranks.
Status check_devices(OffloadPeers& peers, const std::string& uuid) {
  const Result<std::vector<std::byte>> all = peers.exchange(std::as_bytes(std::span(uuid)));
  if (!all.ok()) return all.status();
  const auto* const letters = reinterpret_cast<const char*>(all->data());
  std::map<std::string, const PeerInfo*> users;
  for (std::size_t rank = 0; rank < peers.members().size(); ++rank) {
    const PeerInfo& peer = *peers.members()[rank];
    const std::string device(letters + rank * uuid_digits, uuid_digits);
    const auto [first, is_new] = users.try_emplace(device + facts_of(peer), &peer);
    if (is_new) continue;
    return Status(Code::invalid_argument, first->second->describe() + " and " + peer.describe() +
                                              " use the same device, " + device +
                                              "; NCCL needs a device for each rank");
  }
  return {};
}

}  // namespace

Offload::Offload(const cuda::Api& cuda, const Api& api)
    : cuda_(cuda), api_(api), facts_(to_string(api.version) + ", " + host_id()) {}

Offload::~Offload() {
  for (std::thread& closer : closers_) closer.join();
}

Status Offload::fits(std::span<const PeerInfo* const> members) const {
  const PeerInfo& first = *members.front();
  const std::string version = version_in(facts_of(first));
  const auto differs = [&](const PeerInfo* peer) { return version_in(facts_of(*peer)) != version; };
  const auto other = std::ranges::find_if(members, differs);
  if (other == members.end()) return {};
  return Status(Code::unsupported, first.describe() + " has version " + version + ", " +
                                       (*other)->describe() + " has version " +
                                       version_in(facts_of(**other)));
}

Status Offload::takes(const Fingerprint& call) const { return nccl::takes(call, api_.version); }

Result<std::unique_ptr<OffloadSession>> Offload::open(OffloadPeers& peers) {
  const Result<std::shared_ptr<Lane>> lane = this->lane(peers.memory().device());
  if (!lane.ok()) return lane.status();
  const cuda::Device& device = (*lane)->device();
  if (const Status distinct = check_devices(peers, device.uuid()); !distinct.ok()) return distinct;
  const Result<UniqueId> id = agree_on_id(peers);
  if (!id.ok()) return id.status();
  const cuda::Device::Current current(device);
  const int size = static_cast<int>(peers.members().size());
  Config config;
  Comm comm = nullptr;
  const Outcome begun = api_.CommInitRankConfig(&comm, size, *id, peers.rank(), &config);
  const auto give_up_comm = [&](Comm made) { give_up(made, *lane); };
  std::unique_ptr<ncclComm, decltype(give_up_comm)> owner(comm, give_up_comm);
  if (begun != success && begun != in_progress)
    return status_of(api_, begun, "ncclCommInitRankConfig", nullptr);
  if (const Status ready = wait_ready(comm, peers); !ready.ok()) return ready;
  auto session = Session::create(api_, *lane, regions_, comm, peers.rank(), size);
  if (session.ok()) static_cast<void>(owner.release());
  return session;
}

Result<UniqueId> Offload::agree_on_id(OffloadPeers& peers) {
  UniqueId id{};
  if (peers.rank() == 0) {
    const Status made = status_of(api_, api_.GetUniqueId(&id), "ncclGetUniqueId", nullptr);
    if (!made.ok()) return made;
  }
  const Result<std::vector<std::byte>> all = peers.exchange(std::as_bytes(std::span(id.bytes)));
  if (!all.ok()) return all.status();
  std::memcpy(id.bytes, all->data(), sizeof id.bytes);
  return id;
}

Status Offload::wait_ready(Comm comm, const OffloadPeers& peers) const {
  for (;;) {
    Outcome state = in_progress;
    const Outcome asked = api_.CommGetAsyncError(comm, &state);
    if (asked != success) return status_of(api_, asked, "ncclCommGetAsyncError", comm);
    if (state != in_progress) return status_of(api_, state, "ncclCommInitRankConfig", comm);
    if (Status failed = peers.status(); !failed.ok()) return failed;
    if (peers.deadline().expired()) return Status(Code::timeout, "NCCL has not connected the ranks in time");
    std::this_thread::sleep_for(ready_interval);
  }
}

// `ncclCommAbort` may block, but `open` must return soon.
void Offload::give_up(Comm comm, std::shared_ptr<Lane> lane) {
  const std::lock_guard lock(mutex_);
  closers_.emplace_back([this, comm, kept = std::move(lane)] {
    const cuda::Device::Current current(kept->device());
    api_.CommAbort(comm);
  });
}

Result<std::shared_ptr<Lane>> Offload::lane(int device) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Lane>& known = lanes_[device];
  if (known != nullptr) return known;
  Result<std::shared_ptr<Lane>> opened = Lane::open(cuda_, device);
  if (opened.ok()) known = *opened;
  return opened;
}

// NCCL registers memory of devices only. For most host memory, the driver has no attributes and returns an
// error.
Result<std::unique_ptr<RegisteredMemory>> Offload::add_memory(std::span<std::byte> region) {
  unsigned type = 0;
  const auto address = reinterpret_cast<cuda::Address>(region.data());
  const cuda::Outcome known = cuda_.PointerGetAttribute(&type, cuda::attribute_memory_type, address);
  if (api_.CommRegister == nullptr || known != cuda::success || type != cuda::memory_type_device)
    return std::unique_ptr<RegisteredMemory>();
  return Regions::add(regions_, region);
}

}  // namespace tutti::nccl
