#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::tools::doctor {

// A `Table` is text in columns. The first row is the heading.
class Table {
 public:
  // Each letter of `alignment` stands for a column: `l` aligns its text to the left, and `r` to the right.
  explicit Table(std::string_view alignment) : alignment_(alignment) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Returns the lines of the table, each with a newline. The result is empty if the table has no
  // row besides the heading.
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tutti::tools::doctor
