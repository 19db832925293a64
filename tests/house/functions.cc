#include "tests/house/functions.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace tutti::house {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// `Blanked` is the text of a file as one string. It has no comments, no preprocessor lines and no raw
// strings, and a 0 replaces each remaining literal. All line ends remain, so that line numbers do not change.
class Blanked {
 public:
  explicit Blanked(const std::vector<std::string>& lines) {
    bool directive = false;
    for (const std::string& line : lines) {
      directive = directive || (!in_comment_ && raw_end_.empty() && line.starts_with('#'));
      if (directive) {
        directive = line.ends_with('\\');
      } else {
        add(line);
      }
      text_ += '\n';
    }
  }
  const std::string& text() const { return text_; }

 private:
  void add(std::string_view line) {
    for (std::size_t i = 0; i < line.size();) {
      if (in_comment_) {
        i = end_of(line, i, "*/");
        in_comment_ = i > line.size();
      } else if (!raw_end_.empty()) {
        i = end_of(line, i, raw_end_);
        if (i <= line.size()) raw_end_.clear();
      } else if (line.substr(i).starts_with("//")) {
        return;
      } else if (line.substr(i).starts_with("/*")) {
        in_comment_ = true;
        i += 2;
      } else if (line.substr(i).starts_with("R\"")) {
        const std::size_t open = line.find('(', i);
        raw_end_ = ")" + std::string(line.substr(i + 2, open - i - 2)) + "\"";
        i = open + 1;
      } else if (line[i] == '"' || (line[i] == '\'' && (i == 0 || !is_word(line[i - 1])))) {
        i = end_of_literal(line, i);
        text_ += '0';  // stands for the literal
      } else {
        text_ += line[i++];
      }
    }
  }
  // Returns the position after the next `mark`, or a position beyond the end of the line if there is no
  // `mark`.
  static std::size_t end_of(std::string_view line, std::size_t from, std::string_view mark) {
    const std::size_t found = line.find(mark, from);
    return found == line.npos ? line.size() + 1 : found + mark.size();
  }
  static std::size_t end_of_literal(std::string_view line, std::size_t quote) {
    std::size_t i = quote + 1;
    while (i < line.size() && line[i] != line[quote]) i += line[i] == '\\' ? 2 : 1;
    return i + 1;
  }

  std::string text_;
  bool in_comment_ = false;
  std::string raw_end_;  // empty outside a raw string
};

// Removes a leading `template <...>`.
std::string_view without_template(std::string_view head) {
  while (head.starts_with("template <")) {
    std::size_t i = head.find('<');
    for (int depth = 0; i < head.size(); ++i) {
      depth += head[i] == '<' ? 1 : head[i] == '>' ? -1 : 0;
      if (depth == 0) break;
    }
    head.remove_prefix(std::min(i + 1, head.size()));
    head.remove_prefix(std::min(head.find_first_not_of(' '), head.size()));
  }
  return head;
}

// Returns whether there is an '=' outside of parentheses. If so, the braces after it are an
// initialiser. The '=' in an operator's name does not count.
bool is_assigned(std::string_view head) {
  int depth = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    depth += head[i] == '(' ? 1 : head[i] == ')' ? -1 : 0;
    if (head[i] == '=' && depth == 0 && head.substr(0, i).find("operator") == head.npos) return true;
  }
  return false;
}

enum class Brace { container, function, other };

Brace brace_behind(std::string_view head, bool after_space) {
  static constexpr std::array<std::string_view, 7> containers = {
      "namespace", "inline namespace", "class", "struct", "union", "enum", "extern 0"};
  const std::string_view rest = without_template(head);
  const auto begins = [&](std::string_view word) {
    return rest.starts_with(word) && (rest.size() == word.size() || !is_word(rest[word.size()]));
  };
  if (std::ranges::any_of(containers, begins)) return Brace::container;
  if (!after_space || is_assigned(rest) || rest.find('(') == rest.npos) return Brace::other;
  return Brace::function;
}

// A `Reader` reads the source from brace to brace.
class Reader {
 public:
  std::vector<Function> read(const std::string& text) {
    for (const char c : text) {
      if (c == '\n') ++line_;
      if (c == '{') {
        open();
      } else if (c == '}') {
        close();
      } else if (c == ';' && parentheses_ == 0) {
        head_.clear();
      } else {
        add(c);
      }
      before_ = c;
    }
    return std::move(found_);
  }

 private:
  void add(char c) {
    parentheses_ += c == '(' ? 1 : c == ')' ? -1 : 0;
    const bool blank = c == ' ' || c == '\n';
    if (blank && (head_.empty() || head_.back() == ' ')) return;
    if (head_.empty()) begin_ = line_;
    head_ += blank ? ' ' : c;
    if (head_ == "public:" || head_ == "private:" || head_ == "protected:") head_.clear();
  }
  void open() {
    const bool after_space = before_ == ' ' || before_ == '\n';
    while (head_.ends_with(' ')) head_.pop_back();
    const Brace kind = inside_ > 0 ? Brace::other : brace_behind(head_, after_space);
    if (kind == Brace::function) found_.push_back({head_, begin_, 0});
    braces_.push_back(kind);
    inside_ += kind == Brace::container ? 0 : 1;
    // A declaration may continue after a brace initialiser. For example, the initialisers of the
    // members precede a constructor's body.
    if (kind != Brace::other || inside_ > 1) head_.clear();
  }
  void close() {
    if (braces_.empty()) return;
    const Brace kind = braces_.back();
    braces_.pop_back();
    inside_ -= kind == Brace::container ? 0 : 1;
    if (kind == Brace::function) found_.back().last_line = line_;
    if (kind != Brace::other) head_.clear();
  }

  std::vector<Function> found_;
  std::vector<Brace> braces_;  // the open braces
  int inside_ = 0;             // the number of open braces that are not `Brace::container`
  int parentheses_ = 0;
  std::string head_;
  std::size_t begin_ = 1;
  std::size_t line_ = 1;
  char before_ = '\n';
};

}  // namespace

std::vector<Function> functions_of(const SourceFile& file) {
  return Reader().read(Blanked(file.lines).text());
}

}  // namespace tutti::house
