#include <cerrno>

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

ibv_mr* register_memory(ibv_pd* domain, void* address, std::size_t bytes, int access) {
  const Locked machine;
  Device& card = card_of(domain->context);
  const bool remote = (access & IBV_ACCESS_REMOTE_WRITE) != 0;
  if (bytes == 0 || (remote && (access & IBV_ACCESS_LOCAL_WRITE) == 0)) return refused(EINVAL);
  if (bytes > card.settings.memlock - card.registered) return refused(ENOMEM);
  card.registered += bytes;
  ++machine->record.counts.regions;
  ++machine->record.traffic.registrations;
  if (!machine->prepared_for_forks) ++machine->record.traffic.unprepared;
  return machine->regions.add(domain, address, bytes, access);
}

int deregister_memory(ibv_mr* region) {
  const Locked machine;
  card_of(region->context).registered -= region->length;
  --machine->record.counts.regions;
  machine->regions.remove(static_cast<Region*>(region));
  return 0;
}

}  // namespace

void add_memory_calls(verbs::Functions& table) {
  table.alloc_pd = &allocate_domain;
  table.dealloc_pd = &free_domain;
  table.reg_mr = &register_memory;
  table.dereg_mr = &deregister_memory;
}

}  // namespace tutti::provider
