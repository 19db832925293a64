#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::tools::doctor {

// A `Table` is text in columns. The first row is the heading.
class Table {
 public:
  // Each letter of `alignment` is a column: `l` or `r`.
  explicit Table(std::string_view alignment) : alignment_(alignment) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Returns the table with the ends of its lines; nothing if it has no row but the heading.
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tutti::tools::doctor
