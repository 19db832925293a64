#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tutti/status.h>

#include "control/plane.h"

// A control connection carries a hello, its answer, and then frames. All are little-endian, and frames
// have a fixed header. Every field is checked before it is used, and memory is allocated only for bytes that
// have arrived.
namespace tutti::liveness {

inline constexpr std::uint8_t protocol_version = 1;

// A `Hello` is the first 48 bytes that the connecting side sends:
//   magic 8 | version 4 | from 4 | to 4 | generation 4 | job 8 | from's nonce 8 | to's nonce 8
struct Hello {
  std::uint32_t version = protocol_version;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t generation = 0;
  std::uint64_t job = 0;  // a number derived from the addresses of all ranks
  std::uint64_t from_nonce = 0;
  std::uint64_t to_nonce = 0;
};
inline constexpr std::size_t hello_bytes = 48;

enum class Verdict : std::uint32_t {
  welcome = 1,   // frames may follow, from either side
  stranger = 2,  // the hello has another version, or names another job, process or rank
  fenced = 3,    // this rank has given the sender up
  leaving = 4,   // the sender has said goodbye, or this rank is about to leave
  crossed = 5,   // this rank is already connecting to the sender
};

// An `Answer` is the 16-byte reply to a hello: magic 8 | verdict 4 | generation 4
struct Answer {
  Verdict verdict = Verdict::welcome;
  std::uint32_t generation = 0;
};
inline constexpr std::size_t answer_bytes = 16;

enum class FrameKind : std::uint8_t {
  heartbeat = 1,
  lost = 2,     // to all: `target` is given up; code and body say why
  left = 3,     // to all: `target` has said goodbye
  publish = 4,  // a note to all
  send = 5,     // a note to `target`
};

// A `Frame` has 40 bytes and a body:
//   magic 4 | version 1 | kind 1 | hops 1 | code 1 | generation 4 | origin 4 | target 4 | topic 4 |
//   body's length 4 | zero 4 | key 8
struct Frame {
  FrameKind kind = FrameKind::heartbeat;
  std::uint8_t hops = 0;  // publish, send: how many more ranks may pass it on
  Code code = Code::ok;   // lost: the reason
  std::uint32_t generation = 0;
  std::uint32_t origin = 0;
  std::uint32_t target = 0;
  std::uint32_t topic = 0;
  std::uint64_t key = 0;
  std::string body = {};
};
inline constexpr std::size_t frame_header_bytes = 40;

std::string encode(const Hello& hello);
std::string encode(const Answer& answer);
std::string encode(const Frame& frame);
// These two functions decode a hello and an answer from the first bytes. They return nothing if those bytes
// are something else.
std::optional<Hello> decode_hello(std::string_view bytes);
std::optional<Answer> decode_answer(std::string_view bytes);
// Returns whether the bytes received so far may be the beginning of a hello. If they cannot be, the sender is
// a stranger.
bool begins_like_hello(std::string_view bytes);

enum class Parsed : std::uint8_t { whole, incomplete, wrong };
// Removes the first frame from `bytes`, if it is complete.
Parsed take_frame(std::string_view& bytes, Frame& frame);

}  // namespace tutti::liveness
