#include "transport/shm/shares.h"

#include <algorithm>

#include <tutti/log.h>

#include "transport/shm/gathering.h"
#include "transport/shm/joining.h"
#include "transport/shm/shared_memory.h"

namespace tutti::shm {
namespace {

// The memfd and the bells of all travel in one packet.
constexpr std::size_t max_members = max_descriptors - 1;

}  // namespace

Shares::Shares(Hub& hub) : hub_(hub) {}

Shares::~Shares() { stop(); }

void Shares::share(ShareRequest& request) {
  const auto own = std::find(request.members.begin(), request.members.end(), hub_.owner->rank());
  if (own == request.members.end() || request.members.size() > max_members || request.bytes == 0) {
    const bool stranger = own == request.members.end();
    const std::string why = stranger             ? "this rank is not among the members of the segment"
                            : request.bytes == 0 ? "an empty segment"
                                                 : "more than " + std::to_string(max_members) + " members";
    request.done(request, Status(stranger || request.bytes == 0 ? Code::invalid_argument : Code::unsupported,
                                 "shm: " + why));
    return;
  }
  if (own != request.members.begin()) {
    joinings_.push_back(std::make_unique<Joining>(hub_, *this, request,
                                                  static_cast<std::size_t>(own - request.members.begin())));
    joinings_.back()->start();
    return;
  }
  gatherings_.push_back(std::make_unique<Gathering>(hub_, *this, request));
  const std::uint64_t key = request.key;
  gatherings_.back()->start();
  for (auto next = early_.begin(); next != early_.end();) {
    const auto early = next++;
    if (early->hello.key != key) continue;
    Early taken = std::move(*early);
    early_.erase(early);
    // Each may be the one that completes it, or makes it fail.
    if (Gathering* gathering = find(key)) {
      gathering->add(taken.hello, std::move(taken.descriptors), std::move(taken.link));
    }
  }
}

void Shares::cancel(ShareRequest& request, const Status& why) {
  const auto asked_by = [&](const auto& wish) { return &wish->request() == &request; };
  if (const auto found = std::ranges::find_if(gatherings_, asked_by); found != gatherings_.end()) {
    (*found)->fail(why);
  } else if (const auto joins = std::ranges::find_if(joinings_, asked_by); joins != joinings_.end()) {
    (*joins)->cancel(why);
  }
}

Gathering* Shares::find(std::uint64_t key) {
  for (const auto& gathering : gatherings_) {
    if (gathering->key() == key) return gathering.get();
  }
  return nullptr;
}

void Shares::on_hello(const Note& hello, std::vector<Descriptor> descriptors, std::unique_ptr<Link> link) {
  if (Gathering* gathering = find(hello.key)) {
    gathering->add(hello, std::move(descriptors), std::move(link));
    return;
  }
  for (const Note& refusal : refusals_) {
    if (refusal.key == hello.key) return link->send_last(refusal);
  }
  const auto waiting = std::count_if(early_.begin(), early_.end(),
                                     [&](const Early& early) { return early.hello.from == hello.from; });
  if (waiting >= max_early_per_peer) {
    log::debug("shm: too many wishes for segments by ", hub_.describe(static_cast<int>(hello.from)));
    return;
  }
  link->set_events(*this);
  early_.push_back({hello, std::move(descriptors), std::move(link)});
}

void Shares::on_note(Link& link, const Note&, std::vector<Descriptor>) { drop_early(link); }

void Shares::on_broken(Link& link, const std::string&) { drop_early(link); }

void Shares::drop_early(Link& link) {
  early_.remove_if([&](const Early& early) { return early.link.get() == &link; });
}

void Shares::remove(Gathering& gathering, const Note* refusal) {
  if (refusal != nullptr) refusals_.push_back(*refusal);
  if (refusals_.size() > max_refusals) refusals_.pop_front();
  std::erase_if(gatherings_, [&](const auto& each) { return each.get() == &gathering; });
}

void Shares::remove(Joining& joining) {
  std::erase_if(joinings_, [&](const auto& each) { return each.get() == &joining; });
}

void Shares::remove(SharedMemory& memory) { std::erase(memories_, &memory); }

void Shares::stop() {
  gatherings_.clear();
  joinings_.clear();
  early_.clear();
  while (!memories_.empty()) memories_.back()->detach();
}

}  // namespace tutti::shm
