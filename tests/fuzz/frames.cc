// Fuzzes the message protocol (StreamChannel). This side sends, receives and cancels, while a
// faulty peer sends frames. After this side has granted memory to the peer, the peer also writes
// into that memory, until it reports the end of the write. The input chooses each step. Most frames
// have plausible headers, so that they pass the first checks.
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/fuzz/input.h"
#include "transport/stream/limits.h"
#include "transport/stream/remote_memory.h"
#include "transport/stream/stream_channel.h"

namespace tutti::fuzz {
namespace {

constexpr MessageLimits small_limits{.eager = 100, .credit = 4096, .fragment = 256};
// The longest message, long enough for payloads on several stripes.
constexpr std::size_t most_bytes = 70'000;

struct Send : SendOp {
  std::vector<std::byte> memory;
  bool over = false;
};

struct Recv : RecvOp {
  std::vector<std::byte> memory;
  Reducer reducer{DataType::int32, ReduceOp::sum};
  bool over = false;
};

// `Card` offers all memory for remote writes, except the memory of receives with an odd sequence number.
class Card final : public RemoteMemory {
 public:
  Result<std::unique_ptr<RegisteredMemory>> add(std::span<std::byte>) override {
    return std::unique_ptr<RegisteredMemory>();
  }
  std::optional<RemotePlace> find(std::span<const std::byte> memory) const override {
    if (std::ranges::count(hidden, memory.data()) > 0) return std::nullopt;
    return RemotePlace{reinterpret_cast<std::uintptr_t>(memory.data()), 1};
  }
  std::vector<const std::byte*> hidden;
};

// `Owner` matches receives with messages as the mesh does: by tag, if the length is right.
class Owner final : public TransportOwner {
 public:
  Owner() : peers_(2) { peers_[1].rank = 1; }
  const PeerInfo& peer(int rank) const override { return peers_[static_cast<std::size_t>(rank)]; }
  int size() const override { return 2; }
  int rank() const override { return 1; }
  Channel* on_incoming(int, Transport&) override { return nullptr; }
  void on_unusable(int, Transport&, const Status&) override {}
  RecvOp* on_arrival(Arrival& arrival) override {
    if (discards) {
      arrival.channel->discard(arrival);
      return nullptr;
    }
    const auto found = std::ranges::find_if(posted, [&](const Recv* op) { return fits(*op, arrival); });
    if (found == posted.end()) {
      kept.push_back(&arrival);
      return nullptr;
    }
    Recv* const op = *found;
    posted.erase(found);
    return op;
  }
  void on_withdrawn(Arrival& arrival) override {
    const auto found = std::ranges::find(kept, &arrival);
    require(found != kept.end());
    kept.erase(found);
  }
  void on_abort(int, std::uint32_t, const Status& why) override { require(!why.ok()); }
  void on_channel_down(int, const Status& why) override { require(!why.ok() && ++downs == 1); }

  void recv(Recv& op) {
    const auto found = std::ranges::find_if(kept, [&](const Arrival* arrival) { return fits(op, *arrival); });
    if (found == kept.end()) {
      posted.push_back(&op);
      return;
    }
    Arrival* const arrival = *found;
    kept.erase(found);
    op.channel = arrival->channel;
    arrival->channel->claim(*arrival, op);
  }

  std::vector<Recv*> posted;
  std::vector<Arrival*> kept;
  bool discards = false;
  int downs = 0;

 private:
  static bool fits(const Recv& op, const Arrival& arrival) {
    return op.tag == arrival.header.tag && op.bytes == arrival.header.bytes;
  }
  std::vector<PeerInfo> peers_;
};

class Pipe final : public StreamChannel {
 public:
  Pipe(Owner& owner, Card& card) : StreamChannel(0, owner, small_limits) {
    accept_stripes();
    write_remotely(card);
  }

  bool closed = false;
  bool blocked = false;  // the peer does not read

  void write() {
    if (writing_ || blocked) return;
    writing_ = true;
    while (!closed) {
      OutgoingFrame* const frame = next_frame();
      if (frame == nullptr) break;
      note_grant(frame->header);
      if (late && frame->route == PayloadRoute::remote_write) {
        under_way_.push_back(frame);
        continue;
      }
      frame->written = frame_header_bytes + frame->payload.size();
      frame_written(*frame);
    }
    writing_ = false;
  }
  // Ends the oldest remote write of this side. Until then, the write reads its payload.
  void end_write() {
    if (under_way_.empty()) return;
    OutgoingFrame& frame = *under_way_.front();
    under_way_.pop_front();
    for (const std::byte each : frame.payload) require(each == std::byte{0});
    frame_written(frame);
  }
  // Lets the peer write into all memory that is granted to it.
  void scribble() {
    for (const auto& [id, grants] : granted_) {
      for (const Grant& grant : grants) {
        auto* const to = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(grant.place.address));
        to[0] = to[grant.bytes - 1] = std::byte{2};
      }
    }
  }
  // Sets `header` to a report that the peer has written the next fragment of message `id`. Returns
  // false if the peer has no grant for that message.
  bool likely_written(std::uint32_t id, FrameHeader& header) {
    const auto found = granted_.find(id);
    if (found == granted_.end()) return false;
    const Grant& grant = found->second.front();
    header.type = FrameType::written;
    header.id = id;
    header.offset = grant.offset;
    header.message.bytes = std::min<std::uint64_t>(grant.bytes, small_limits.fragment);
    return true;
  }
  void feed(const FrameHeader& header, std::span<const std::byte> payload) {
    note(header);
    if (!begin_frame(header).ok()) return;
    while (!closed && payload_left() > 0) {
      // A payload arrives in pieces. Each piece is a little more than half of the rest, and the
      // last piece has up to seven bytes. A piece may end in the middle of an element.
      const std::size_t piece = payload.size() > 7 ? payload.size() / 2 + 1 : payload.size();
      std::size_t taken = 0;
      if (const auto place = direct(); !place.empty()) {
        taken = std::min(place.size(), piece);
        std::memcpy(place.data(), payload.data(), taken);
        direct_filled(taken);
      } else {
        taken = consume(payload.first(piece));
        if (taken == 0 && !closed) taken = consume(payload);
      }
      if (closed) return;
      require(taken > 0 && taken <= payload.size());
      payload = payload.subspan(taken);
    }
  }
  // Reports a `written` frame without a frame, as a pipe does whose writes carry the message's id.
  void announce(const FrameHeader& header) {
    note(header);
    static_cast<void>(piece_written(header.id));
  }
  void feed_stripe(std::uint8_t stripe, std::span<const std::byte> payload) {
    while (!closed && !payload.empty() && stripe_left(stripe) > 0) {
      const std::size_t most = std::min(payload.size(), stripe_left(stripe));
      std::size_t taken = 0;
      if (const auto place = stripe_direct(stripe); !place.empty()) {
        taken = std::min(place.size(), most);
        std::memcpy(place.data(), payload.data(), taken);
        stripe_filled(stripe, taken);
      } else {
        taken = stripe_consume(stripe, payload.first(most));
      }
      if (taken == 0) return;
      payload = payload.subspan(taken);
    }
  }
  void end() { pipe_failed(Status(Code::peer_lost, "end of file", 0)); }
  // Ends all remote writes of both sides. Call this only after the pipe has been closed.
  void end_writes() {
    scribble();
    granted_.clear();
    while (!under_way_.empty()) end_write();
    writes_over();
  }
  bool late = false;  // remote writes end only when `end_write` is called

 protected:
  void kick() override { write(); }
  void close_pipe() override { closed = true; }

 private:
  void note_grant(const EncodedFrameHeader& encoded) {
    FrameHeader header;
    require(decode(encoded, header));
    if (header.type == FrameType::grant && announced_.contains(header.id)) {
      granted_[header.id].push_back(to_grant(header));
    }
  }
  // Updates the peer's grants after the peer has sent a frame with this header. A peer that uses an
  // id again must ignore earlier grants for that id, since they may belong to the earlier message.
  // (A correct peer uses an id again only after 65,536 messages.)
  void note(const FrameHeader& header) {
    const auto found = granted_.find(header.id);
    if (header.type == FrameType::request && used_.insert(header.id).second) {
      announced_.insert(header.id);
    } else if (header.type == FrameType::request || header.type == FrameType::cancel) {
      announced_.erase(header.id);
      granted_.erase(header.id);
    } else if (header.type == FrameType::written && found != granted_.end()) {
      std::deque<Grant>& grants = found->second;
      Grant& grant = grants.front();
      const std::uint64_t bytes = std::min(header.message.bytes, grant.bytes);
      grant.offset += bytes;
      grant.place.address += bytes;
      grant.bytes -= bytes;
      if (grant.bytes == 0) grants.pop_front();
      if (grants.empty()) granted_.erase(found);
    }
  }

  bool writing_ = false;
  std::deque<OutgoingFrame*> under_way_;
  std::set<std::uint32_t> used_, announced_;            // ids of the peer's messages
  std::map<std::uint32_t, std::deque<Grant>> granted_;  // the grants to the peer, by message
};

class Session {
 public:
  Session(const std::uint8_t* data, std::size_t size) : input_(data, size) {}
  ~Session() {
    if (!pipe_.closed) pipe_.close(Status(Code::aborted, "over"), input_.size() % 2 == 0);
    if (!pipe_.closed) pipe_.close(Status(Code::aborted, "over"), false);
    pipe_.end_writes();
    require(pipe_.drained());
    for (const Send& send : sends_) require(send.over);
  }
  void run() {
    for (int i = 0; i < 2000 && !input_.empty() && !pipe_.closed; ++i) step();
    if (!pipe_.closed && input_.size() % 3 == 0) pipe_.end();
  }

 private:
  MessageTag tag() { return {1, 0, static_cast<std::uint64_t>(input_.byte() % 4)}; }
  std::size_t length() {
    const std::uint16_t drawn = input_.number<std::uint16_t>();
    return drawn % 4 == 0 ? std::size_t{drawn} * 4 % most_bytes : drawn % 400;
  }

  void step() {
    switch (input_.byte() % 9) {
      case 0:
        return whole_frame();
      case 1:
      case 2:
      case 3:
        return likely_frame();
      case 4:
        return post_recv();
      case 5:
        return post_send();
      case 6:
        return take_back();
      case 7:
        return pipe_.feed_stripe(static_cast<std::uint8_t>(1 + input_.byte() % max_stripes),
                                 payload(length()));
      default:
        return switch_something();
    }
  }
  std::span<const std::byte> payload(std::size_t bytes) {
    payload_.assign(bytes, std::byte{1});
    const auto given = input_.bytes(std::min<std::size_t>(bytes, 16));
    std::ranges::copy(given, payload_.begin());
    return payload_;
  }
  void whole_frame() {
    std::array<std::byte, frame_header_bytes> bytes{};
    std::ranges::copy(input_.bytes(bytes.size()), bytes.begin());
    FrameHeader header;
    if (!decode(bytes, header)) return;
    EncodedFrameHeader again;
    encode(header, again);
    require(std::ranges::equal(again, bytes));
    if (header.payload <= most_bytes) pipe_.feed(header, payload(header.payload));
  }
  void likely_frame() {
    FrameHeader header;
    pipe_.scribble();
    header.type = static_cast<FrameType>(1 + input_.byte() % 9);
    header.code = static_cast<Code>(input_.byte() % 12);
    const std::uint8_t shape = input_.byte();
    header.stripe = header.type == FrameType::data && (shape & 1) != 0 ? 1 + input_.byte() % max_stripes : 0;
    header.id = (shape & 2) != 0 ? input_.number<std::uint32_t>() : input_.byte() % 4;
    header.payload = static_cast<std::uint32_t>((shape & 4) != 0 ? length() : small_limits.fragment);
    header.message.bytes = (shape & 8) != 0 ? input_.number<std::uint64_t>() : length();
    header.offset = (shape & 16) != 0 ? input_.number<std::uint64_t>() : length() / 64 * 64;
    if (header.type == FrameType::eager && (shape & 32) == 0) header.message.bytes = header.payload;
    if (header.type == FrameType::request && (shape & 32) == 0) header.payload = 0;
    header.message.tag = tag();
    if ((shape & 64) != 0) header.type = (shape & 128) != 0 ? FrameType::grant : FrameType::written;
    if (header.type == FrameType::grant) header.payload = 0;
    if (header.type == FrameType::written && (shape & 1) != 0) {
      pipe_.likely_written(header.id, header);
      return pipe_.announce(header);
    }
    if (header.type == FrameType::written && (shape & 32) == 0 && pipe_.likely_written(header.id, header)) {
      header.payload = 0;
    }
    pipe_.feed(header, payload(header.stripe == 0 ? header.payload : 0));
  }
  void post_recv() {
    Recv& op = recvs_.emplace_back();
    op.memory.resize(length());
    const bool reduces = op.memory.size() % 4 == 0 && input_.byte() % 2 == 0;
    op.tag = tag();
    op.peer = 0;
    op.bytes = op.memory.size();
    op.sink.out = op.memory.data();
    if (op.tag.sequence % 2 != 0) card_.hidden.push_back(op.memory.data());
    if (reduces) {
      op.sink.local = op.memory.data();
      op.sink.reducer = &op.reducer;
    }
    op.done = [](RecvOp& self, const Status&) {
      require(!static_cast<Recv&>(self).over);
      static_cast<Recv&>(self).over = true;
      static_cast<Recv&>(self).memory = {};  // a sanitizer detects any later access
    };
    owner_.recv(op);
  }
  void post_send() {
    Send& op = sends_.emplace_back();
    op.memory.resize(length());
    op.header.tag = tag();
    op.header.bytes = op.memory.size();
    op.data = op.memory.data();
    op.done = [](SendOp& self, const Status&) {
      require(!static_cast<Send&>(self).over);
      static_cast<Send&>(self).over = true;
      static_cast<Send&>(self).memory = {};
    };
    pipe_.send(op);
  }
  void take_back() {
    const Status why(Code::aborted, "taken back");
    const std::uint8_t which = input_.byte();
    if (which % 2 == 0 && !sends_.empty()) {
      Send& op = sends_[which / 2u % sends_.size()];
      if (!op.over) pipe_.cancel_send(op, why);
    } else if (!recvs_.empty()) {
      Recv& op = recvs_[which / 2u % recvs_.size()];
      const bool unmatched = std::ranges::count(owner_.posted, &op) > 0;
      if (!op.over && !unmatched) pipe_.cancel_recv(op, why);
    }
  }
  void switch_something() {
    const std::uint8_t what = input_.byte();
    if (what % 4 == 0) owner_.discards = !owner_.discards;
    if (what % 4 == 1) pipe_.blocked = !pipe_.blocked;
    if (what >= 128) pipe_.late = !pipe_.late;
    if (what % 64 >= 32) pipe_.end_write();
    if (what % 4 == 2) pipe_.send_abort(1, Status(Code::mismatch, "this"));
    if (what % 4 == 3 && !owner_.kept.empty()) {
      Arrival* const arrival = owner_.kept.front();
      owner_.kept.erase(owner_.kept.begin());
      pipe_.discard(*arrival);
    }
    if (!pipe_.closed) pipe_.write();
  }

  Input input_;
  Owner owner_;
  std::deque<Recv> recvs_;
  std::deque<Send> sends_;
  Card card_;
  Pipe pipe_{owner_, card_};
  std::vector<std::byte> payload_;
};

}  // namespace
}  // namespace tutti::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  tutti::fuzz::Session(data, size).run();
  return 0;
}
