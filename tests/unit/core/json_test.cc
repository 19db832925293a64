#include "core/json.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti {
namespace {

TEST(JsonWriter, SeparatesWhatStandsSideBySide) {
  JsonWriter json;
  json.begin_object().field("a", 1).key("list").begin_array().value(true).value("x").begin_object();
  json.end_object().end_array().field("b", std::uint64_t{2}).key("none").begin_array().end_array();
  json.end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"list":[true,"x",{}],"b":2,"none":[]})");
  EXPECT_EQ(json.take(), R"({"a":1,"list":[true,"x",{}],"b":2,"none":[]})");
  EXPECT_EQ(json.begin_array().end_array().text(), "[]");
}

TEST(JsonWriter, KeepsLargeNumbers) {
  JsonWriter json;
  json.begin_array().value(std::numeric_limits<std::uint64_t>::max());
  json.value(std::numeric_limits<std::int64_t>::min()).end_array();
  EXPECT_EQ(json.text(), "[18446744073709551615,-9223372036854775808]");
}

// A JSON parser must accept the output for every short sequence of bytes, and for the special cases
// of UTF-8.
TEST(JsonWriter, AnyTextIsAString) {
  const auto written = [](std::string_view text) {
    JsonWriter json;
    return nlohmann::json::parse(json.value(text).take()).get<std::string>();
  };
  for (int first = 0; first < 256; ++first) {
    EXPECT_NO_THROW(written(std::string(1, static_cast<char>(first))));
    for (int second = 0; second < 256; ++second) {
      const std::string pair = {static_cast<char>(first), static_cast<char>(second)};
      EXPECT_NO_THROW(written(pair));
    }
  }
  for (const std::string text : {"", "tab\tquote\"back\\slash", "é", "€", "𝄞", "line\nend"}) {
    EXPECT_EQ(written(text), text);
  }
  EXPECT_EQ(written("\xc2\x9b[m"), "\xc2\x9b[m");
  EXPECT_EQ(JsonWriter().value(std::string_view("\xc2\x9b\x1b")).take(), "\"\\u009b\\u001b\"");
  const std::string bad = "\xef\xbf\xbd";  // replaces each byte that is not UTF-8
  EXPECT_EQ(written("\xe2\x82"), bad + bad);
  EXPECT_EQ(written("\xc0\x80"), bad + bad);
  EXPECT_EQ(written("\xed\xa0\x80"), bad + bad + bad);
  EXPECT_EQ(written("\xf4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(written("a\xff"
                    "b"),
            "a" + bad + "b");
}

}  // namespace
}  // namespace tutti
