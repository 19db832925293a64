#include "control/desk.h"

#include <algorithm>
#include <utility>

#include <tutti/log.h>

#include "control/notes.h"
#include "transport/mesh/mesh.h"

namespace tutti {

namespace {

// Returns whether `decision` answers the note `asked`. A refusal answers only notes of the same attempt,
// since another attempt may follow.
bool concerns(const ShrinkNote& decision, const ShrinkNote& asked) {
  return decision.kind != ShrinkNote::Kind::refuse || decision.attempt == asked.attempt;
}

ShrinkNote about(std::uint32_t context, ShrinkNote::Kind kind) {
  ShrinkNote note;
  note.context = context;
  note.kind = kind;
  return note;
}

}  // namespace

ControlDesk::ControlDesk(Driver& driver, Mesh& mesh) : driver_(driver), mesh_(mesh) {
  task_.desk = this;
  task_.run = [](DriverTask& task) { static_cast<Task&>(task).desk->read_inbox(); };
}

ControlDesk::~ControlDesk() = default;

void ControlDesk::start(std::unique_ptr<ControlPlane> plane) {
  {
    const DriverGuard guard(driver_);
    plane_ = std::move(plane);
  }
  plane_->start(*this);
}

void ControlDesk::stop() {
  if (plane_ == nullptr) return;
  plane_->stop();
  const DriverGuard guard(driver_);  // the guard's destructor runs the tasks that were posted last
}

// --- on the plane's thread ---

void ControlDesk::on_lost(int rank, const Status& why) { hand_over({What::lost, rank, why, {}}); }
void ControlDesk::on_left(int rank) { hand_over({What::left, rank, {}, {}}); }
void ControlDesk::on_fenced(const Status& why) { hand_over({What::fenced, -1, why, {}}); }
void ControlDesk::on_note(const ControlNote& note) { hand_over({What::note, note.origin, {}, note}); }

void ControlDesk::hand_over(Event event) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back(std::move(event));
    first = !std::exchange(posted_, true);
  }
  if (first) driver_.post(task_);
}

// --- on the driving thread ---

void ControlDesk::read_inbox() {
  std::vector<Event> events;
  {
    const std::lock_guard lock(mutex_);
    posted_ = false;
    events.swap(inbox_);
  }
  for (const Event& event : events) handle(event);
}

void ControlDesk::handle(const Event& event) {
  switch (event.what) {
    case What::lost:
      lose(event.rank, event.why);
      break;
    case What::left:
      left_.insert(event.rank);
      for (ControlClient* client : clients_) client->on_leave();
      break;
    case What::fenced:
      fenced_ = true;
      why_fenced_ = event.why;
      for (ControlClient* client : clients_) client->fail(event.why);
      break;
    case What::note:
      read_note(event.note);
      break;
  }
  act();
}

// Makes all communicators fail, even those without the lost rank. In such a communicator, a rank may be
// waiting for a member that itself waits for the lost rank in another communicator.
void ControlDesk::lose(int rank, const Status& why) {
  if (!lost_.emplace(rank, why).second) return;
  losses_.push_back(rank);
  log::info("a rank is lost: ", why.message());
  mesh_.fail_peer(rank, why);
  for (ControlClient* client : clients_) client->fail(why);
  for (ControlClient* client : clients_) client->on_loss();
}

void ControlDesk::read_note(const ControlNote& note) {
  if (note.topic == topic_failure) {
    const auto failure = decode_failure(note.body);
    if (!failure) return;
    const bool known = failure->why.peer() < mesh_.size();
    return mesh_.on_abort(note.origin, failure->context,
                          known ? failure->why : Status(failure->why.code(), failure->why.message()));
  }
  const std::uint32_t context = context_of_note(note.body);
  const auto client = std::ranges::find(clients_, context, &ControlClient::context);
  if (client != clients_.end()) (*client)->on_note(note);
  if (note.topic == topic_shrink) answer_shrink(note, context, client != clients_.end());
}

// Answers a shrink note about a communicator that this rank has finished shrinking, or that does
// not exist any more. `closed_` holds ranges of numbers of closed communicators. To save memory, it
// may merge its oldest ranges into one, which then contains the numbers between them, too. One of
// these numbers may belong to a communicator that still exists, so `alive` must be checked as well.
void ControlDesk::answer_shrink(const ControlNote& note, std::uint32_t context, bool alive) {
  const auto asked = decode_shrink(note.body);
  const auto kind = asked ? asked->kind : ShrinkNote::Kind::learned;
  if (kind != ShrinkNote::Kind::join && kind != ShrinkNote::Kind::ask && kind != ShrinkNote::Kind::propose &&
      kind != ShrinkNote::Kind::commit)
    return;
  const auto decision = decisions_.find(context);
  if (decision != decisions_.end() && concerns(*decode_shrink(decision->second), *asked)) {
    const bool knows = kind == ShrinkNote::Kind::commit;
    send(note.origin, topic_shrink,
         knows ? encode(about(context, ShrinkNote::Kind::learned)) : decision->second);
  } else if (!alive && closed_.contains(context)) {
    send(note.origin, topic_shrink, encode(about(context, ShrinkNote::Kind::decline)));
  }
}

// Communicators may end their operations here, since this is never called from within the mesh.
void ControlDesk::act() {
  for (ControlClient* client : clients_) client->act_on_failure();
}

// If a member was lost after the ranks agreed on the members, the new communicator fails at once.
void ControlDesk::add(ControlClient& client) {
  clients_.push_back(&client);
  if (fenced_) client.fail(why_fenced_);
  // A communicator keeps only its first failure as the cause, so the losses are reported in the order in
  // which they became known.
  for (const int rank : losses_) {
    if (std::ranges::count(client.ranks(), rank) != 0) client.fail(lost_.at(rank));
  }
}

void ControlDesk::remove(ControlClient& client) {
  std::erase(clients_, &client);
  if (plane_ != nullptr) closed_.insert(client.context());
}

void ControlDesk::give_up(int rank, const Status& why) {
  if (plane_ == nullptr || is_lost(rank)) return;
  plane_->give_up(rank, why);
  lose(rank, why);
  act();
}

void ControlDesk::remember(std::uint32_t context, std::string decision) {
  decisions_[context] = std::move(decision);
}

void ControlDesk::set_generation(std::uint32_t generation) {
  generation_ = generation;
  if (plane_ != nullptr) plane_->set_generation(generation);
}

void ControlDesk::tell_failure(std::uint32_t context, const Status& why) {
  publish(topic_failure, std::uint64_t{context} + 1, encode(FailureNote{context, why}));
}

void ControlDesk::renounce(std::uint32_t context, const std::vector<int>& members, const Status& why) {
  mesh_.abort(context, members, why);
  for (const int member : members) {
    if (member != mesh_.rank()) send(member, topic_failure, encode(FailureNote{context, why}));
  }
}

void ControlDesk::publish(std::uint32_t topic, std::uint64_t key, std::string body) {
  if (plane_ != nullptr) plane_->publish(topic, key, std::move(body));
}

void ControlDesk::send(int rank, std::uint32_t topic, std::string body) {
  if (plane_ != nullptr) plane_->send(rank, topic, std::move(body));
}

}  // namespace tutti
