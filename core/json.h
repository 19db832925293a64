#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// A `JsonWriter` writes JSON piece by piece. It replaces bytes that are not UTF-8 with U+FFFD, so that any
// parser accepts the result. The caller must end every object and array.
class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // Writes a key. Inside an object, each value needs a key before it.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth);
  JsonWriter& value(std::int64_t number);
  JsonWriter& value(std::uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<std::int64_t>(number)); }

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    key(name);
    return value(content);
  }

  const std::string& text() const { return text_; }
  // Returns the text written so far, and begins a new text.
  std::string take();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);

  std::string text_;
  bool first_ = true;  // whether the next value is the first on its level
};

}  // namespace tutti
