#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "core/collective_args.h"

// What communicators write to each other over the control plane. Little-endian; what comes from a peer is
// checked field by field.
namespace tutti {

enum ControlTopic : std::uint32_t {
  topic_failure = 1,  // FailureNote, to all
  topic_blocked = 2,  // CallNote, to all: somebody has waited for long in this call
  topic_expired = 3,  // ExpiredNote, to the leader: an operation's time is over
  topic_where = 4,    // CallNote, to all: the leader asks who has come to this call
  topic_here = 5,     // HereNote, the answer
  topic_shrink = 6,   // ShrinkNote, between members
  topic_unused = 7,   // a context alone: memory that all members shared is used by none any more
  topic_differs = 8,  // CallNote, to all: the sender has noticed a call that differs, and asks for theirs
  topic_called = 9,   // CallNote, the answer
};

// Puts fields into a body, one after the other.
class NoteWriter {
 public:
  template <class T>
  NoteWriter& put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      body_ += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xff);
    return *this;
  }
  NoteWriter& text(std::string_view rest) {
    body_ += rest;
    return *this;
  }
  std::string take() { return std::move(body_); }

 private:
  std::string body_;
};

// Takes them out again; once something is missing all that follows is zero, and `ok` says so.
class NoteReader {
 public:
  explicit NoteReader(std::string_view body) : body_(body) {}
  template <class T>
  T get() {
    if (body_.size() < sizeof(T)) ok_ = false;
    if (!ok_) return T{};
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<unsigned char>(body_[i]);
    body_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  std::string_view rest() const { return body_; }
  bool ok() const { return ok_; }

 private:
  std::string_view body_;
  bool ok_ = true;
};

// A communicator has failed.
struct FailureNote {
  std::uint32_t context = 0;
  Status why;
};
std::string encode(const FailureNote& note);
std::optional<FailureNote> decode_failure(std::string_view body);

// The communicator that a note of any topic is about.
std::uint32_t context_of_note(std::string_view body);

// A collective.
struct CallNote {
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;
  Fingerprint call;
};
std::string encode(const CallNote& note);
std::optional<CallNote> decode_call(std::string_view body);

struct ExpiredNote : CallNote {
  std::string text;  // what the sender knows itself
};
std::string encode(const ExpiredNote& note);
std::optional<ExpiredNote> decode_expired(std::string_view body);

struct HereNote {
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;  // that was asked for
  std::uint64_t next = 0;      // that the sender will issue next
};
std::string encode(const HereNote& note);
std::optional<HereNote> decode_here(std::string_view body);

}  // namespace tutti
