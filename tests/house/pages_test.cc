// Tests that the paths, links and headings that Markdown pages name exist.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/house/source_tree.h"

namespace tutti::house {
namespace {

namespace fs = std::filesystem;

struct Page {
  fs::path path;                    // from the root: "docs/threads.md"
  std::vector<std::string> blocks;  // the text outside code blocks, one line for each paragraph
  std::vector<std::string> code;    // lines of code blocks
  std::vector<std::string> headings;
};

struct Exception {
  std::string_view word;
  std::string_view reason;
};

// These words in code font look like paths of the tree, but are not.
constexpr std::array exceptions = {
    Exception{"GB/s", "a unit"},
    Exception{"bin/", "in an install"},
    Exception{"share/tutti/examples/", "in an install"},
    Exception{"my_program.cc", "the reader's own"},
    Exception{"train.py", "the reader's own"},
    Exception{"kubeflow.org/v1", "a version of an interface"},
    Exception{"kubeflow.org/v2beta1", "a version of an interface"},
    Exception{"digits.csv", "the value of an option"},
    Exception{"results.csv", "written by ./dev bench"},
    Exception{"limits.csv", "written by ./dev bench"},
    Exception{"summary.csv", "written by ./dev bench"},
    Exception{"report.md", "written by ./dev bench"},
};

// A word in a code block counts as a path only if it begins with one of these.
constexpr std::array folders = {"core/",  "transport/", "rendezvous/", "collectives/", "bindings/",
                                "tools/", "tests/",     "examples/",   "deploy/"};

constexpr std::array extensions = {".cc",   ".h",   ".c",     ".md",   ".py",  ".pyi", ".cmake", ".txt",
                                   ".toml", ".csv", ".proto", ".json", ".svg", ".sh",  ".yaml"};

// Returns the name that GitHub uses for a heading in links: "The machine's limits" is "the-machines-limits".
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') {
      anchor += '-';
    } else if (std::isalnum(byte) || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

Page read_page(const fs::path& path) {
  Page page{path, {""}, {}, {}};
  std::ifstream in(TUTTI_SOURCE_DIR / path);
  bool in_code = false;
  for (std::string line; std::getline(in, line);) {
    const bool fence = line.starts_with("```");
    if (fence) in_code = !in_code;
    if (fence || in_code || line.empty() || line.starts_with("    ")) {
      page.blocks.emplace_back();
      page.code.push_back(line);
      continue;
    }
    if (line.starts_with("#")) page.headings.push_back(anchor_of(line.substr(line.find(' ') + 1)));
    page.blocks.back() += line + ' ';
  }
  return page;
}

const std::vector<Page>& pages() {
  static const std::vector<Page> all = [] {
    std::vector<Page> read;
    for (const char* path : {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"})
      read.push_back(read_page(path));
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(TUTTI_SOURCE_DIR "/docs")) {
      if (entry.path().extension() == ".md")
        read.push_back(read_page(fs::relative(entry.path(), TUTTI_SOURCE_DIR)));
    }
    return read;
  }();
  return all;
}

// Returns the text of `block` that is between backticks. If `inside` is false, returns all other text of
// `block`.
std::string in_code_font(std::string_view block, bool inside = true) {
  std::string text;
  bool code = false;
  for (const char c : block) {
    if (c == '`') {
      code = !code;
      text += ' ';
    } else if (code == inside) {
      text += c;
    }
  }
  return text;
}

std::vector<std::string> words_of(const std::string& text) {
  constexpr std::string_view around = " ,;:()";
  std::vector<std::string> words;
  for (std::size_t begin = text.find_first_not_of(around); begin != text.npos;) {
    const std::size_t space = std::min(text.find(' ', begin), text.size());
    const std::size_t last = text.find_last_not_of(around, space - 1);
    words.push_back(text.substr(begin, last + 1 - begin));
    begin = text.find_first_not_of(around, space);
  }
  return words;
}

// Returns whether `word` looks like a path from the root or from the page's folder. System paths and files
// that a build makes do not count.
bool looks_like_path(std::string_view word) {
  const bool plain = std::ranges::all_of(word, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-./+").find(c) != std::string_view::npos;
  });
  if (!plain || word.starts_with("/") || word.starts_with("build/")) return false;
  return word.find('/') != word.npos || std::ranges::any_of(extensions, [&](std::string_view extension) {
           return word.ends_with(extension);
         });
}

bool exists_from(const Page& page, const std::string& path) {
  return fs::exists(TUTTI_SOURCE_DIR / fs::path(path)) ||
         fs::exists(TUTTI_SOURCE_DIR / page.path.parent_path() / path);
}

bool is_excepted(std::string_view word) {
  return std::ranges::any_of(exceptions, [&](const Exception& exception) { return exception.word == word; });
}

// Returns false if `word` names a file that does not exist. The word may be a header such as
// "<tutti/status.h>", or any other word that looks like a path.
bool names_something(const Page& page, const std::string& word) {
  constexpr std::string_view ours = "<tutti/";
  if (word.starts_with(ours) && word.ends_with(">")) {
    const std::string header = word.substr(ours.size(), word.size() - ours.size() - 1);
    return is_in_the_tree("include/tutti/" + header);
  }
  return !looks_like_path(word) || is_excepted(word) || is_in_the_tree("include/tutti/" + word) ||
         exists_from(page, word);
}

void expect_something(const Page& page, const std::string& word) {
  EXPECT_TRUE(names_something(page, word))
      << page.path << ": there is no `" << word << "`; write the path from the root";
}

TEST(Pages, NamePathsThatExist) {
  ASSERT_GT(pages().size(), 10u);
  for (const Page& page : pages()) {
    // The changelog also names files that no longer exist.
    if (page.path == "CHANGELOG.md") continue;
    for (const std::string& block : page.blocks) {
      for (const std::string& word : words_of(in_code_font(block))) expect_something(page, word);
    }
    for (const std::string& line : page.code) {
      for (const std::string& word : words_of(line)) {
        const auto begins = [&](std::string_view folder) { return word.starts_with(folder); };
        if (std::ranges::any_of(folders, begins)) expect_something(page, word);
      }
    }
  }
}

TEST(Pages, KnowAPathWhenTheySeeOne) {
  for (const char* path : {"include/tutti/status.h", "config.cc", "tests/house/", "./dev", "CMakeLists.txt"})
    EXPECT_TRUE(looks_like_path(path)) << path;
  for (const char* word :
       {"Work::wait", "tcp://host:port", "/dev/shm", "build/bench", "$HOME/bin", "-n", "2.5"})
    EXPECT_FALSE(looks_like_path(word)) << word;
  EXPECT_FALSE(names_something(pages().front(), "core/no_such_file.h"));
  EXPECT_FALSE(names_something(pages().front(), "<tutti/no_such_file.h>"));
}

// Returns the targets of "[text](target)", except those on the web.
std::vector<std::string> links_of(const Page& page) {
  std::vector<std::string> links;
  for (const std::string& block : page.blocks) {
    const std::string text = in_code_font(block, false);
    for (std::size_t at = text.find("]("); at != text.npos; at = text.find("](", at + 1)) {
      const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
      if (!target.starts_with("http")) links.push_back(target);
    }
  }
  return links;
}

TEST(Pages, LinkToPagesAndHeadingsThatExist) {
  int links = 0;
  for (const Page& page : pages()) {
    for (const std::string& target : links_of(page)) {
      ++links;
      const std::size_t mark = std::min(target.find('#'), target.size());
      const fs::path there =
          mark == 0 ? page.path : (page.path.parent_path() / target.substr(0, mark)).lexically_normal();
      ASSERT_TRUE(fs::exists(TUTTI_SOURCE_DIR / there)) << page.path << " links to " << target;
      if (mark == target.size()) continue;
      const std::vector<std::string> headings = read_page(there).headings;
      EXPECT_NE(std::ranges::find(headings, target.substr(mark + 1)), headings.end())
          << page.path << " links to " << target;
    }
  }
  EXPECT_GT(links, 50);
}

}  // namespace
}  // namespace tutti::house
