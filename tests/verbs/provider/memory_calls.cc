#include <array>
#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "tests/verbs/provider/calls.h"
#include "tests/verbs/provider/machine.h"

namespace tutti::provider {
namespace {

ibv_pd* allocate_domain(ibv_context* context) {
  const Locked machine;
  auto domain = std::make_unique<ibv_pd>();
  domain->context = context;
  ++machine->record.counts.domains;
  return keep(machine->domains, std::move(domain));
}

int free_domain(ibv_pd* domain) {
  const Locked machine;
  const bool used = machine->regions.any_in(domain) ||
                    any_uses(machine->pairs, [&](const auto& pair) { return pair.pd == domain; });
  if (used) return EBUSY;
  --machine->record.counts.domains;
  machine->domains.erase(domain);
  return 0;
}

// Returns whether the process can read the first and the last byte. The kernel refuses to lock other memory.
bool is_readable(const void* address, std::size_t bytes) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return true;
  const Descriptor reading(ends[0]), writing(ends[1]);
  const auto* const first = static_cast<const std::byte*>(address);
  return write(writing.get(), first, 1) == 1 && write(writing.get(), first + bytes - 1, 1) == 1;
}

ibv_mr* register_memory(ibv_pd* domain, void* address, std::size_t bytes, int access) {
  const Locked machine;
  Device& card = card_of(domain->context);
  const bool remote = (access & IBV_ACCESS_REMOTE_WRITE) != 0;
  if (bytes == 0 || (remote && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) return refused(EINVAL);
  if (bytes > card.settings.memlock - card.registered) return refused(ENOMEM);
  if (!is_readable(address, bytes)) return refused(EFAULT);
  card.registered += bytes;
  ++machine->record.counts.regions;
  ++machine->record.traffic.registrations;
  if (!machine->prepared_for_forks) ++machine->record.traffic.unprepared;
  return machine->regions.add(domain, address, bytes, access);
}

// While a window is bound to a region, a card may refuse to deregister the region, or may leave the window as
// it is. So the provider records a mistake.
int deregister_memory(ibv_mr* region) {
  const Locked machine;
  if (machine->regions.any_window_of(*static_cast<Region*>(region))) {
    machine->mistake("memory was deregistered to which a window was bound");
    return EBUSY;
  }
  card_of(region->context).registered -= region->length;
  --machine->record.counts.regions;
  machine->regions.remove(static_cast<Region*>(region));
  return 0;
}

ibv_mw* allocate_window(ibv_pd* domain, ibv_mw_type type) {
  const Locked machine;
  if (type != IBV_MW_TYPE_2 || !card_of(domain->context).settings.windows) return refused(EOPNOTSUPP);
  ++machine->record.counts.windows;
  return machine->regions.add_window(domain);
}

int free_window(ibv_mw* window) {
  const Locked machine;
  --machine->record.counts.windows;
  machine->regions.remove(static_cast<Window*>(window));
  return 0;
}

}  // namespace

void add_window_operations(ibv_context_ops& operations) {
  operations.alloc_mw = &allocate_window;
  operations.dealloc_mw = &free_window;
}

void add_memory_calls(verbs::Functions& table) {
  table.alloc_pd = &allocate_domain;
  table.dealloc_pd = &free_domain;
  table.reg_mr = &register_memory;
  table.dereg_mr = &deregister_memory;
}

}  // namespace tutti::provider
