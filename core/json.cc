#include "core/json.h"

#include <utility>

#include "core/shown.h"

namespace tutti {

void JsonWriter::separate() {
  if (!first_) text_ += ',';
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ':';
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(std::int64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

JsonWriter& JsonWriter::value(std::uint64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  text_ += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      text_ += "\\ufffd";
    } else if (is_control(text.substr(0, length))) {
      const auto byte = static_cast<unsigned char>(text[length - 1]);  // C1 controls are c2 80 to c2 9f
      (text_ += "\\u00") += {digits[byte >> 4], digits[byte & 0xf]};
    } else {
      if (c == '"' || c == '\\') text_ += '\\';
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

std::string JsonWriter::take() {
  first_ = true;
  return std::exchange(text_, {});
}

}  // namespace tutti
