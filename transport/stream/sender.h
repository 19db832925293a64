#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <tutti/status.h>

#include "core/intrusive_list.h"
#include "transport/channel.h"
#include "transport/stream/frame.h"
#include "transport/stream/limits.h"
#include "transport/stream/remote_memory.h"

namespace tutti {

// A `StreamSender` is the sending half of a StreamChannel: it decides which frame is sent next.
//
// Aborts go first, and then control frames. Announcements (eager messages, requests) follow in the
// order of `push`, as far as credit and the limit of unanswered requests permit. Fragments of large
// messages come next, one of each message in turn. One fragment is also sent after a number of
// announcements in a row, so that small messages cannot starve large ones. A goodbye comes last.
class StreamSender {
 public:
  StreamSender(const StreamLimits& limits, ChannelCounters& counters)
      : limits_(limits), counters_(counters) {}
  StreamSender(const StreamSender&) = delete;
  StreamSender& operator=(const StreamSender&) = delete;

  void push(SendOp& op);
  // Removes the operation, in any state, and completes it with `why`. If a remote write still reads the
  // operation's memory, the operation completes when that write has ended. Returns false if a control frame
  // could not be queued (see `control`).
  [[nodiscard]] bool cancel(SendOp& op, const Status& why);

  // Queues a control frame: a clear, cancel or refuse. Returns false if too many control frames are waiting,
  // which means that the peer does not read them.
  [[nodiscard]] bool control(FrameType type, std::uint32_t id, Code code = Code::ok);
  // Queues a grant. Returns false in the same case as `control`.
  [[nodiscard]] bool grant(std::uint32_t id, const Grant& grant);
  void abort(std::uint32_t context, const Status& why);
  void goodbye() { goodbye_ = Goodbye::queued; }
  bool goodbye_written() const { return goodbye_ == Goodbye::written; }
  // Adds to the credit that this rank owes the peer. A frame returns the owed credit once it amounts to half
  // of `StreamLimits::credit`.
  void return_credit(std::uint32_t units) { credit_owed_ += units; }

  // These functions handle frames from the peer. They return null, or what is wrong with the frame. An answer
  // to a message that has already ended is not an error.
  const char* on_clear(std::uint32_t id);
  const char* on_grant(std::uint32_t id, const Grant& grant);
  const char* on_refuse(std::uint32_t id, const Status& why);
  const char* on_credit(std::uint64_t units);

  // Lets this sender register memory for a message that the peer has granted memory for.
  void write_remotely(RemoteMemory& remote) { remote_ = &remote; }
  // Moves all queued operations and aborts to another channel. It must not be called after `next_frame` has
  // returned a frame.
  void hand_over(Channel& to);

  bool urgent() const { return control_first_ != control_.size() || !aborts_.empty() || credit_is_due(); }
  bool has_frames() const;
  OutgoingFrame* next_frame();
  void frame_written(OutgoingFrame& frame);

  // Completes all operations with `why`. If `keep_frames` is set, frames that the pipe holds stay valid, with
  // a copy of their payload. Otherwise they become invalid. Frames with a remote write stay as they are, and
  // their operations end in `frame_written` or `end_writes`.
  void fail_all(const Status& why, bool keep_frames);
  // Completes the operations that wait for remote writes. Call this when no remote write is under way any
  // more.
  void end_writes();

 private:
  // `waiting`: all bytes that were granted so far are written or being written, and further grants will
  // arrive. `ending`: the operation has failed, and ends when its remote writes have ended.
  enum OpState : std::uint32_t { idle, queued, requested, active, waiting, leaving, ending };
  enum class Goodbye : std::uint8_t { none, queued, taken, written };
  struct Frame : OutgoingFrame {
    Frame* next = nullptr;
    Frame* previous = nullptr;
    bool goodbye = false;
    // If this frame is a remote write whose operation has failed or was cancelled, `ended` is that operation,
    // and `op` is null. The operation ends when all of its remote writes have ended.
    SendOp* ended = nullptr;
    std::unique_ptr<std::byte[]> copy;
  };
  struct Slot {
    SendOp* op = nullptr;
    std::uint16_t generation = 1;
    std::uint64_t granted = 0;  // bytes for which grants have arrived
    std::vector<Grant> grants;  // what is still to be written of these grants, in order
  };
  struct Control {
    FrameType type;
    Code code;
    std::uint32_t id;
    Grant grant;
  };
  struct Ending {
    SendOp* op;
    Status why;
  };
  // `Registered` is memory that was registered for one operation.
  struct Registered {
    const SendOp* op;
    std::unique_ptr<RegisteredMemory> memory;
  };
  struct Abort {
    std::uint32_t context;
    Status why;
  };

  bool is_eager(const SendOp& op) const { return op.header.bytes <= limits_.eager; }
  bool credit_is_due() const { return credit_owed_ >= limits_.credit / 2; }
  bool can_announce() const;
  Frame& take_frame(const FrameHeader& header);
  OutgoingFrame* next_control();
  OutgoingFrame* next_abort();
  OutgoingFrame* next_announcement();
  OutgoingFrame* next_fragment();
  std::uint32_t take_slot(SendOp& op);
  void release_slot(std::uint32_t id);
  static constexpr std::uint32_t slot_index(std::uint32_t id) { return id & 0xffff; }
  // Returns the slot of a message that has not ended, or null.
  Slot* find_slot(std::uint32_t id) {
    Slot& slot = slots_[slot_index(id)];
    return slot.op == nullptr || slot.generation != id >> 16 ? nullptr : &slot;
  }
  Frame& next_write(SendOp& op, Slot& slot);
  void give_up(SendOp& op, const Status& why, bool keep_frames);
  void end_if_written(const SendOp& op);
  bool in_pipe(const SendOp& op) const;
  void detach_frames(SendOp& op, bool keep);
  void register_briefly(const SendOp& op);
  const RegisteredMemory* registered(const SendOp& op) const;
  void finish(SendOp& op, const Status& status);

  const StreamLimits limits_;
  ChannelCounters& counters_;
  RemoteMemory* remote_ = nullptr;

  IntrusiveList<SendOp> queue_;   // operations that are not announced yet
  IntrusiveList<SendOp> active_;  // operations that have fragments, or pieces of grants, to send
  std::vector<Ending> ending_;
  std::vector<Registered> registered_;
  std::uint32_t announced_in_a_row_ = 0;
  std::uint64_t credit_used_ = 0;
  std::uint64_t credit_owed_ = 0;
  std::uint32_t unanswered_ = 0;

  std::vector<Slot> slots_;
  std::vector<std::uint16_t> free_slots_;

  std::vector<Control> control_;  // the frames from `control_first_` on are still to be sent
  std::size_t control_first_ = 0;
  std::deque<Abort> aborts_;
  Goodbye goodbye_ = Goodbye::none;

  std::deque<Frame> frames_;  // the memory of all frames
  Frame* free_frames_ = nullptr;
  IntrusiveList<Frame> in_pipe_;
};

}  // namespace tutti
