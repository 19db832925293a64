#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "core/intrusive_hash.h"
#include "core/intrusive_list.h"
#include "transport/channel.h"
#include "transport/message.h"

namespace tutti {

class ContextEvents;

// A `ContextTable` holds the messages and receives of one context that have not been matched yet.
//
// Messages of collectives are matched by their exact tag, so these messages and their receives are
// in hash tables. User messages are matched as in MPI. An arriving message takes the earliest
// posted receive that fits it, and a receive takes the earliest arrival that fits. So user messages
// and their receives are in lists, oldest first.
class ContextTable {
 public:
  // `early` counts the early messages of all contexts. A message is early if it has arrived before this rank
  // issued the operation that it belongs to.
  explicit ContextTable(std::size_t& early) : early_count_(early) {}

  ContextEvents* events = nullptr;  // null until a communicator is attached
  bool detaching = false;

  static bool fits(const RecvOp& op, int peer, const MessageTag& tag) {
    const bool fits_tag = op.any_tag ? tag.sequence < library_tag_bit : op.tag.sequence == tag.sequence;
    return fits_tag && (op.peer == any_source || op.peer == peer);
  }

  void post(RecvOp& op) {
    if (is_user(op.tag)) {
      user_posted_.push_back(op);
    } else {
      posted_.insert(op);
    }
  }
  void unpost(RecvOp& op) {
    if (is_user(op.tag)) {
      user_posted_.remove(op);
    } else {
      posted_.remove(op);
    }
  }
  // Keeps a message until a receive takes it. If `early` is set, this rank has not issued the operation of
  // the message yet. The mesh must compare the message with the operation later.
  void keep(Arrival& arrival, bool early) {
    arrival.early = early;
    if (is_user(arrival.header.tag)) {
      user_arrived_.push_back(arrival);
    } else {
      arrived_.insert(arrival);
      if (early) {
        early_.insert(arrival);
        ++early_count_;
      }
    }
    ++kept_;
  }
  void unkeep(Arrival& arrival) {
    if (is_user(arrival.header.tag)) {
      user_arrived_.remove(arrival);
    } else {
      arrived_.remove(arrival);
      if (arrival.early) compared(arrival);
    }
    --kept_;
  }
  void compared(Arrival& arrival) {
    early_.remove(arrival);
    --early_count_;
    arrival.early = false;
  }
  std::size_t kept() const { return kept_; }

  // These functions find the posted receive for a message, the kept message for a receive, and the next early
  // message of an operation, without removing them. They return null if there is none.
  RecvOp* find_posted(int peer, const MessageTag& tag) {
    if (!is_user(tag)) {
      return posted_.find(hash(peer, tag),
                          [&](const RecvOp& op) { return op.peer == peer && op.tag == tag; });
    }
    RecvOp* op = user_posted_.front();
    while (op != nullptr && !fits(*op, peer, tag)) op = op->next;
    return op;
  }
  Arrival* find_kept(const RecvOp& op) {
    if (!is_user(op.tag)) {
      return arrived_.find(hash(op.peer, op.tag), [&](const Arrival& arrival) {
        return arrival.peer == op.peer && arrival.header.tag == op.tag;
      });
    }
    Arrival* arrival = user_arrived_.front();
    while (arrival != nullptr && !fits(op, arrival->peer, arrival->header.tag)) arrival = arrival->next;
    return arrival;
  }
  Arrival* find_early(std::uint64_t sequence) {
    return early_.find(hash(sequence),
                       [&](const Arrival& arrival) { return arrival.header.tag.sequence == sequence; });
  }

  RecvOp* any_posted() { return user_posted_.empty() ? posted_.any() : user_posted_.front(); }
  Arrival* any_kept() { return user_arrived_.empty() ? arrived_.any() : user_arrived_.front(); }

  // Takes the receives that are posted for exactly this peer, and appends them to `to`.
  void take_posted(int peer, IntrusiveList<RecvOp>& to) {
    const auto take = [&](RecvOp& op) {
      if (op.peer != peer) return;
      unpost(op);
      to.push_back(op);
    };
    posted_.for_each(take);
    for (RecvOp* op = user_posted_.front(); op != nullptr;) {
      RecvOp* next = op->next;
      take(*op);
      op = next;
    }
  }

 private:
  static std::uint64_t hash(std::uint64_t sequence) { return (sequence + 1) * 0x9e3779b97f4a7c15u; }
  static std::uint64_t hash(int peer, const MessageTag& tag) {
    const std::uint64_t place = std::uint64_t{static_cast<std::uint32_t>(peer)} << 32 | tag.index;
    return hash(tag.sequence ^ (place * 0xbf58476d1ce4e5b9u));
  }
  struct PostedTraits {
    static std::uint64_t hash(const RecvOp& op) { return ContextTable::hash(op.peer, op.tag); }
    static RecvOp*& next(RecvOp& op) { return op.next; }
    static RecvOp*& previous(RecvOp& op) { return op.previous; }
  };
  struct ArrivedTraits {
    static std::uint64_t hash(const Arrival& a) { return ContextTable::hash(a.peer, a.header.tag); }
    static Arrival*& next(Arrival& arrival) { return arrival.next; }
    static Arrival*& previous(Arrival& arrival) { return arrival.previous; }
  };
  struct EarlyTraits {
    static std::uint64_t hash(const Arrival& a) { return ContextTable::hash(a.header.tag.sequence); }
    static Arrival*& next(Arrival& arrival) { return arrival.next_early; }
    static Arrival*& previous(Arrival& arrival) { return arrival.previous_early; }
  };

  IntrusiveHash<RecvOp, PostedTraits> posted_;
  IntrusiveHash<Arrival, ArrivedTraits> arrived_;
  IntrusiveHash<Arrival, EarlyTraits> early_;
  std::size_t& early_count_;
  IntrusiveList<RecvOp> user_posted_;
  IntrusiveList<Arrival> user_arrived_;
  std::size_t kept_ = 0;
};

// A `ContextRanges` is a set of contexts, such as the closed ones. It stores ranges of their numbers, and
// joins adjacent ranges. Numbers are assigned in increasing order, so few ranges remain. If there are still
// too many (because a rank is a member of every second group, say), the two oldest ranges are merged. The
// numbers between them then belong to the set, too.
class ContextRanges {
 public:
  bool contains(std::uint32_t context) const {
    auto after = ranges_.upper_bound(context);
    return after != ranges_.begin() && std::prev(after)->second >= context;
  }

  void insert(std::uint32_t context) {
    auto after = ranges_.upper_bound(context);
    const bool joins_before =
        after != ranges_.begin() && std::uint64_t{std::prev(after)->second} + 1 >= context;
    auto range = joins_before ? std::prev(after) : ranges_.emplace_hint(after, context, context);
    range->second = std::max(range->second, context);
    merge_next(range, 1);
    if (ranges_.size() > max_ranges) merge_next(ranges_.begin(), ~std::uint32_t{0});
  }

  std::size_t ranges() const { return ranges_.size(); }
  // Returns the highest number, or 0 if there is none.
  std::uint32_t last() const { return ranges_.empty() ? 0 : std::prev(ranges_.end())->second; }

 private:
  static constexpr std::size_t max_ranges = 1024;

  // Joins a range with its successor if the successor begins at most `distance` after its end.
  void merge_next(std::map<std::uint32_t, std::uint32_t>::iterator range, std::uint32_t distance) {
    auto next = std::next(range);
    if (next == ranges_.end() || next->first - range->second > distance) return;
    range->second = next->second;
    ranges_.erase(next);
  }

  std::map<std::uint32_t, std::uint32_t> ranges_;  // first -> last
};

}  // namespace tutti
