#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tutti/status.h>

#include "core/fingerprint.h"

namespace tutti {

// A `ControlTopic` is the subject of a note over the control plane, and says which of the structures below
// the note carries. Notes are little-endian. Every field of a peer's note is checked.
enum ControlTopic : std::uint32_t {
  topic_failure = 1,  // FailureNote, to all
  topic_blocked = 2,  // CallNote, to all: the sender has waited in this call for a long time
  topic_expired = 3,  // ExpiredNote, to the leader: an operation's time limit has expired
  topic_where = 4,    // CallNote, to all: the leader asks which ranks have reached this call
  topic_here = 5,     // HereNote: the answer to topic_where
  topic_shrink = 6,   // ShrinkNote, between members
  topic_unused = 7,   // only a context: all members have released an allocation of that communicator
  topic_differs = 8,  // CallNote, to all: calls differ, and the sender asks all ranks for theirs
  topic_called = 9,   // CallNote: the answer to topic_differs
};

// A `NoteWriter` appends fields to a body.
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

// A `NoteReader` reads the fields of a body. If a field is missing, that field and all later ones are zero,
// and `ok` returns false.
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

// A `FailureNote` says that a communicator has failed.
struct FailureNote {
  std::uint32_t context = 0;
  Status why;
};
std::string encode(const FailureNote& note);
std::optional<FailureNote> decode_failure(std::string_view body);

// Returns the communicator that a note of any topic is about.
std::uint32_t context_of_note(std::string_view body);

// A `CallNote` describes a collective.
struct CallNote {
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;
  Fingerprint call;
};
std::string encode(const CallNote& note);
std::optional<CallNote> decode_call(std::string_view body);

struct ExpiredNote : CallNote {
  std::string text;  // the sender's own description of the failure
};
std::string encode(const ExpiredNote& note);
std::optional<ExpiredNote> decode_expired(std::string_view body);

struct HereNote {
  std::uint32_t context = 0;
  std::uint64_t sequence = 0;  // the operation that the leader asked about
  std::uint64_t next = 0;      // the operation that the sender will issue next
};
std::string encode(const HereNote& note);
std::optional<HereNote> decode_here(std::string_view body);

// Members send each other a `ShrinkNote` to agree on the members of the new communicator (`topic_shrink`).
struct ShrinkNote {
  enum class Kind : std::uint8_t {
    join = 1,  // to the leader: the sender takes part
    ask,       // by the leader: does the receiver take part?
    decline,   // the communicator is closed here
    propose,   // by the leader: these members continue
    accept,
    object,   // the number of the new context is in use at the sender
    commit,   // the proposal is final; by the leader, or by a member that has learned it
    refuse,   // too few members are left
    learned,  // the sender has received the commit
  };
  Kind kind = Kind::join;
  std::uint32_t context = 0;     // the communicator that shrinks
  std::uint32_t attempt = 0;     // counts attempts: another may follow a refusal or a timeout
  std::uint32_t round = 0;       // counts proposals
  std::uint32_t generation = 0;  // join: the sender's; commit: the new communicator's
  std::uint32_t number = 0;      // the new context; join, object: the lowest number that the sender can take
  std::uint32_t needed = 0;      // join: the least number of members that the sender accepts
  std::uint64_t completed = 0;   // collectives completed by the sender; commit: by all
  // propose, commit: the place of the survivors' shared memory, if they share any; join: not empty if the
  // sender shares memory with the other ranks of its host
  std::optional<std::uint64_t> place;
  // join: the members that the sender cannot reach; propose, commit, refuse: the members that stay
  std::vector<bool> members;
  std::vector<bool> spared;  // propose, commit: the members that leave voluntarily
};
std::string encode(const ShrinkNote& note);
std::optional<ShrinkNote> decode_shrink(std::string_view body);

}  // namespace tutti
