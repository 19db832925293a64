#include "control/liveness/frame.h"

#include <algorithm>

namespace tutti::liveness {
namespace {

// The newline at the end of each text reveals a gateway that translates line ends. On one host, a socket that
// connects to a port without a listener may be connected to itself. Such a socket must not take its own hello
// for an answer, so hellos and answers begin with different magic numbers.
constexpr std::string_view hello_magic = "tuttic?\n";
constexpr std::string_view answer_magic = "tuttic!\n";
constexpr std::string_view frame_magic = "ttc\n";

template <class T>
void put(std::string& to, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    to += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * i & 0xff);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes_[i]);
    bytes_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }

 private:
  std::string_view bytes_;
};

bool is_known(std::uint8_t kind) {
  return kind >= static_cast<std::uint8_t>(FrameKind::heartbeat) &&
         kind <= static_cast<std::uint8_t>(FrameKind::send);
}

}  // namespace

std::string encode(const Hello& hello) {
  std::string bytes(hello_magic);
  put(bytes, hello.version);
  put(bytes, hello.from);
  put(bytes, hello.to);
  put(bytes, hello.generation);
  put(bytes, hello.job);
  put(bytes, hello.from_nonce);
  put(bytes, hello.to_nonce);
  return bytes;
}

std::string encode(const Answer& answer) {
  std::string bytes(answer_magic);
  put(bytes, static_cast<std::uint32_t>(answer.verdict));
  put(bytes, answer.generation);
  return bytes;
}

std::string encode(const Frame& frame) {
  std::string bytes(frame_magic);
  bytes.reserve(frame_header_bytes + frame.body.size());
  put(bytes, protocol_version);
  put(bytes, static_cast<std::uint8_t>(frame.kind));
  put(bytes, frame.hops);
  put(bytes, static_cast<std::uint8_t>(frame.code));
  put(bytes, frame.generation);
  put(bytes, frame.origin);
  put(bytes, frame.target);
  put(bytes, frame.topic);
  put(bytes, static_cast<std::uint32_t>(frame.body.size()));
  put(bytes, std::uint32_t{0});
  put(bytes, frame.key);
  return bytes + frame.body;
}

bool begins_like_hello(std::string_view bytes) {
  const std::size_t known = std::min(bytes.size(), hello_magic.size());
  return bytes.substr(0, known) == hello_magic.substr(0, known);
}

std::optional<Hello> decode_hello(std::string_view bytes) {
  if (bytes.size() < hello_bytes || !begins_like_hello(bytes)) return std::nullopt;
  Reader reader(bytes.substr(hello_magic.size()));
  Hello hello;
  hello.version = reader.get<std::uint32_t>();
  hello.from = reader.get<std::uint32_t>();
  hello.to = reader.get<std::uint32_t>();
  hello.generation = reader.get<std::uint32_t>();
  hello.job = reader.get<std::uint64_t>();
  hello.from_nonce = reader.get<std::uint64_t>();
  hello.to_nonce = reader.get<std::uint64_t>();
  return hello;
}

std::optional<Answer> decode_answer(std::string_view bytes) {
  if (bytes.size() < answer_bytes || !bytes.starts_with(answer_magic)) return std::nullopt;
  Reader reader(bytes.substr(answer_magic.size()));
  const auto verdict = reader.get<std::uint32_t>();
  if (verdict < static_cast<std::uint32_t>(Verdict::welcome) ||
      verdict > static_cast<std::uint32_t>(Verdict::crossed)) {
    return std::nullopt;
  }
  return Answer{static_cast<Verdict>(verdict), reader.get<std::uint32_t>()};
}

Parsed take_frame(std::string_view& bytes, Frame& frame) {
  const std::size_t known = std::min(bytes.size(), frame_magic.size());
  if (bytes.substr(0, known) != frame_magic.substr(0, known)) return Parsed::wrong;
  if (bytes.size() < frame_header_bytes) return Parsed::incomplete;
  Reader reader(bytes.substr(frame_magic.size()));
  const auto version = reader.get<std::uint8_t>();
  const auto kind = reader.get<std::uint8_t>();
  frame.hops = reader.get<std::uint8_t>();
  const auto code = reader.get<std::uint8_t>();
  if (version != protocol_version || !is_known(kind) || code > static_cast<std::uint8_t>(Code::internal))
    return Parsed::wrong;
  frame.kind = static_cast<FrameKind>(kind);
  frame.code = static_cast<Code>(code);
  if (frame.kind == FrameKind::lost && frame.code == Code::ok) return Parsed::wrong;
  frame.generation = reader.get<std::uint32_t>();
  frame.origin = reader.get<std::uint32_t>();
  frame.target = reader.get<std::uint32_t>();
  frame.topic = reader.get<std::uint32_t>();
  const auto length = reader.get<std::uint32_t>();
  const auto zero = reader.get<std::uint32_t>();
  frame.key = reader.get<std::uint64_t>();
  if (length > max_control_body || zero != 0) return Parsed::wrong;
  if (bytes.size() < frame_header_bytes + length) return Parsed::incomplete;
  frame.body = bytes.substr(frame_header_bytes, length);
  bytes.remove_prefix(frame_header_bytes + length);
  return Parsed::whole;
}

}  // namespace tutti::liveness
