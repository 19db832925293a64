#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/mesh/context_table.h"
#include "transport/mesh/mesh.h"

namespace tutti {

// `Mesh::State` holds the peers and contexts of a mesh.
struct Mesh::State {
  struct Peer {
    std::unique_ptr<Channel> channel;
    Transport* transport = nullptr;  // null until one is chosen
    Status status;
    bool awaited = false;  // a receive has asked for a connection
  };
  // An `EarlyAbort` is an abort that arrived before its context was attached.
  struct EarlyAbort {
    std::uint32_t context;
    int peer;
    Status why;
  };
  // If there are more early aborts than this, the oldest ones are dropped. Most early aborts concern contexts
  // that this rank never attaches.
  static constexpr std::size_t max_early_aborts = 1024;

  explicit State(std::size_t& early_messages) : early(early_messages) {}

  std::size_t& early;  // counts messages kept for operations that are not issued yet

  std::vector<Peer> peers;
  // These channels have been replaced by channels of other transports. They stay here since their functions
  // may still be on the stack.
  std::vector<std::unique_ptr<Channel>> replaced;
  std::vector<const Transport*> passed_over;  // the log says why these do not reach a peer
  std::unordered_map<std::uint32_t, std::unique_ptr<ContextTable>> contexts;
  ContextRanges closed;
  std::deque<EarlyAbort> early_aborts;  // at most one from each peer for each context; the oldest first
  IntrusiveList<RecvOp> failing;        // receives from lost peers whose `done` is still to be called
  bool started = false;
  bool shut = false;

  // These members cache the result of the last `find`. The next `find` nearly always looks for the same
  // context.
  std::uint32_t recent_number = 0;
  ContextTable* recent = nullptr;

  ContextTable* find(std::uint32_t context) {
    if (recent != nullptr && recent_number == context) return recent;
    const auto found = contexts.find(context);
    if (found == contexts.end()) return nullptr;
    recent_number = context;
    recent = found->second.get();
    return recent;
  }
  // Returns the context, or null if no communicator is attached to it.
  ContextTable* attached(std::uint32_t context) {
    ContextTable* table = find(context);
    return table != nullptr && table->events != nullptr ? table : nullptr;
  }
  // Returns the context, and makes it if necessary. Returns null if messages for it must be discarded.
  ContextTable* find_or_make(std::uint32_t context) {
    if (ContextTable* table = find(context)) return table->detaching ? nullptr : table;
    if (shut || closed.contains(context)) return nullptr;
    return (contexts[context] = std::make_unique<ContextTable>(early)).get();
  }
  void erase(std::uint32_t context) {
    recent = nullptr;
    contexts.erase(context);
  }
};

inline constexpr std::uint32_t context_of(const MessageTag& tag) { return tag.context & ~user_context_bit; }

}  // namespace tutti
