#include "transport/nccl/offload.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "transport/cuda/device_memory.h"
#include "transport/nccl/arithmetic.h"

namespace tutti::nccl {

namespace {

// NCCL regards ranks with different host ids as ranks on different hosts, and lets such ranks use the same
// device.
std::string host_id() {
  const char* const set = std::getenv("NCCL_HOSTID");
  if (set == nullptr) return "default host";
  std::vector<std::uint64_t> letters;
  for (const char* letter = set; *letter != '\0'; ++letter)
    letters.push_back(static_cast<unsigned char>(*letter));
  return "host " + std::to_string(digest_of(letters));
}

// A rank's facts are its version, its host id and whether it adds fp8. The last fact may contain commas.
struct Facts {
  explicit Facts(const PeerInfo& peer) {
    const std::string& all = peer.offloads.at("nccl");
    const std::size_t first = all.find(", ");
    const std::size_t second = all.find(", ", first == all.npos ? first : first + 2);
    version = all.substr(0, first);
    if (first != all.npos) host = all.substr(first + 2, second == all.npos ? second : second - first - 2);
    if (second != all.npos) float8 = all.substr(second + 2);
  }
  std::string version, host, float8;
};

constexpr const char* adds_float8 = "adds fp8";

// Says whether NCCL can reduce 8-bit floating-point elements on all devices of this process, or why not. The
// answer covers all devices, since the device that a communicator will use is not known yet.
std::string float8_on(const cuda::Api& cuda) {
  const std::string no = "adds no fp8: ";
  const Result<std::vector<int>> all = cuda::capabilities(cuda);
  if (!all.ok()) return no + all.status().message();
  const auto least = std::ranges::min_element(*all);
  if (least == all->end()) return no + "there is no device";
  if (*least >= least_capability_with_float8) return adds_float8;
  return no + "device " + std::to_string(least - all->begin()) + " has compute capability " +
         std::to_string(*least / 10) + "." + std::to_string(*least % 10);
}

// Returns ok if no device is used by two ranks. NCCL tells the devices of a host apart by their addresses.
Status check_devices(OffloadPeers& peers, const cuda::Device& device) {
  Result<std::string> mine = device.bus_address();
  if (!mine.ok()) return mine.status();
  mine->resize(cuda::bus_address_letters);
  const Result<std::vector<std::byte>> all = peers.exchange(std::as_bytes(std::span(*mine)));
  if (!all.ok()) return all.status();
  const auto* letters = reinterpret_cast<const char*>(all->data());
  std::map<std::string, const PeerInfo*> users;
  for (const PeerInfo* const peer : peers.members()) {
    const std::string address(letters, cuda::bus_address_letters);
    letters += address.size();
    const std::string host = peer->host + " " + peer->boot_id + " " + Facts(*peer).host;
    const auto [first, is_new] = users.try_emplace(address + " " + host, peer);
    if (is_new) continue;
    return Status(Code::invalid_argument,
                  first->second->describe() + " and " + peer->describe() + " use the same device, " +
                      address + "; NCCL needs a device for each rank",
                  peer->rank);
  }
  return {};
}

}  // namespace

Offload::Offload(const cuda::Api& cuda, const Api& api)
    : cuda_(cuda),
      api_(api),
      host_(host_id()),
      facts_(to_string(api.version) + ", " + host_ + ", " + float8_on(cuda)) {}

Status Offload::fits(std::span<const PeerInfo* const> members) const {
  const PeerInfo& first = *members.front();
  const std::string version = Facts(first).version;
  const auto differs = [&](const PeerInfo* peer) { return Facts(*peer).version != version; };
  const auto other = std::ranges::find_if(members, differs);
  if (other == members.end()) return {};
  return Status(Code::unsupported, first.describe() + " has version " + version + ", " +
                                       (*other)->describe() + " has version " + Facts(**other).version);
}

Status Offload::takes(const Fingerprint& call, std::span<const PeerInfo* const> members) const {
  const Status taken = nccl::takes(call, api_.version);
  if (!taken.ok() || !reduces_float8(call)) return taken;
  const auto can = [](const PeerInfo* peer) { return Facts(*peer).float8 == adds_float8; };
  const auto unable = std::ranges::find_if_not(members, can);
  if (unable == members.end()) return {};
  return Status(Code::unsupported, (*unable)->describe() + " " + Facts(**unable).float8);
}

Result<std::unique_ptr<OffloadSession>> Offload::open(OffloadPeers& peers) {
  const Result<std::shared_ptr<Lane>> lane = this->lane(peers.memory().device());
  if (!lane.ok()) return lane.status();
  const cuda::Device& device = (*lane)->device();
  if (const Status distinct = check_devices(peers, device); !distinct.ok()) return distinct;
  const int size = static_cast<int>(peers.members().size());
  Result<std::unique_ptr<Session>> made = Session::create(api_, *lane, regions_, peers.rank(), size);
  if (!made.ok()) return made.status();
  const Result<UniqueId> id = agree_on_id(peers);
  if (!id.ok()) return id.status();
  std::unique_ptr<Session> session = std::move(made).take();
  const Status connected = session->connect(*id, peers);
  if (connected.ok()) return std::unique_ptr<OffloadSession>(std::move(session));
  give_up(std::move(session), connected);
  return connected;
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

// `ncclCommAbort` may block, but `open` must return soon. So the session is kept, and a later `give_up`
// destroys it once it has ended.
void Offload::give_up(std::unique_ptr<Session> session, const Status& why) {
  session->abort(why);
  const std::lock_guard lock(mutex_);
  std::erase_if(given_up_, [](const std::unique_ptr<Session>& each) { return each->has_ended(); });
  given_up_.push_back(std::move(session));
}

Result<std::shared_ptr<Lane>> Offload::lane(int device) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Lane>& known = lanes_[device];
  if (known != nullptr) return known;
  Result<std::shared_ptr<Lane>> opened = Lane::of(cuda_, device, host_);
  if (opened.ok()) known = *opened;
  return opened;
}

// NCCL registers memory of devices only. For most host memory, the driver has no attributes and returns an
// error.
Result<std::unique_ptr<RegisteredMemory>> Offload::add_memory(std::span<std::byte> region) {
  unsigned type = 0;
  int device = 0;
  const auto address = reinterpret_cast<cuda::Address>(region.data());
  const auto get = [&](void* value, int attribute) {
    return cuda_.PointerGetAttribute(value, attribute, address) == cuda::success;
  };
  if (api_.CommRegister == nullptr || !get(&type, cuda::attribute_memory_type) ||
      type != cuda::memory_type_device || !get(&device, cuda::attribute_device_ordinal))
    return std::unique_ptr<RegisteredMemory>();
  return Regions::add(regions_, device, region);
}

Result<std::unique_ptr<AllocatedMemory>> Offload::allocate(std::size_t bytes, Memory memory) {
  Result<std::unique_ptr<cuda::DeviceMemory>> made =
      cuda::DeviceMemory::allocate(cuda_, memory.device(), bytes, {api_.MemAlloc, api_.MemFree});
  if (!made.ok()) return made.status();
  Result<std::unique_ptr<RegisteredMemory>> registration = add_memory({(*made)->data(), bytes});
  if (!registration.ok()) return registration.status();
  (*made)->keep(*std::move(registration));
  return std::unique_ptr<AllocatedMemory>(*std::move(made));
}

}  // namespace tutti::nccl
