#include "tools/run/output.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "core/new_file.h"
#include "tools/command_line.h"

namespace tutti::tools {
namespace {

constexpr std::size_t tail_bytes = 8 * 1024;
constexpr std::size_t tail_lines = 10;
constexpr const char* stream_names[] = {"stdout", "stderr"};

bool same_file(int a, int b) {
  struct stat first;
  struct stat second;
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

// `LogFile` writes bytes as they arrive. After an error, such as a full disk, it drops all further
// bytes.
class Output::LogFile {
 public:
  LogFile(std::string path, Descriptor file) : path_(std::move(path)), file_(std::move(file)) {}

  const std::string& path() const { return path_; }
  // Returns the error if this is the first write that fails, otherwise an empty text.
  std::string write(std::string_view bytes) {
    const int problem = file_ ? write_all(file_.get(), bytes) : 0;
    if (problem == 0) return {};
    file_.reset();
    return std::strerror(problem);
  }

 private:
  const std::string path_;
  Descriptor file_;
};

Output::Output(asio::io_context& io, const OutputOptions& options)
    : options_(options), out_(io, STDOUT_FILENO), out_lines_(io, out_, options.timestamp) {
  if (same_file(STDOUT_FILENO, STDERR_FILENO)) return;
  err_.emplace(io, STDERR_FILENO);
  err_lines_.emplace(io, *err_, options.timestamp);
}

Output::~Output() = default;

Status Output::open(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    for (const Stream stream : {Stream::out, Stream::err}) {
      if (stream == Stream::err && options_.merge_stderr) continue;
      const char* name = stream_names[static_cast<int>(stream)];
      RankStream& target = ranks_.back()->streams[static_cast<int>(stream)];
      if (options_.tag) target.source.tag = "[1," + std::to_string(rank) + "]<" + name + ">:";
      if (const Status status = open_file(target, rank, name); !status.ok()) return status;
    }
  }
  return {};
}

// Opens DIR/1/rank.N/stdout or stderr. mpirun uses the same names. The 1 is the number that mpirun
// gives to the application, and `tutti run` starts only one application.
Status Output::open_file(RankStream& stream, int rank, const char* name) {
  if (options_.directory.empty()) return {};
  const std::string above = options_.directory + "/1", folder = above + "/rank." + std::to_string(rank);
  std::error_code error;
  // The launcher makes these folders itself. It refuses a symbolic link in place of a folder, since the link
  // would lead elsewhere.
  for (const std::string& each : {above, folder}) {
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(each, error)))
      return Status(Code::invalid_argument, "cannot write to " + each + ": it is a symbolic link");
  }
  std::filesystem::create_directories(folder, error);
  if (error) return Status(Code::invalid_argument, "cannot create " + folder + ": " + error.message());
  const std::string path = folder + "/" + name;
  Result<Descriptor> file = open_new_file(path);
  if (!file.ok()) return file.status().with_context("cannot write " + path);
  stream.file = std::make_unique<LogFile>(path, *std::move(file));
  return {};
}

void Output::write(int rank, Stream stream, std::string_view bytes) {
  Rank& source = *ranks_[static_cast<std::size_t>(rank)];
  RankStream& target = source.streams[static_cast<int>(stream)];
  const bool keep_tail = stream == Stream::err || options_.merge_stderr;
  if (keep_tail) {
    source.tail.append(bytes);
    if (source.tail.size() > 2 * tail_bytes) source.tail.erase(0, source.tail.size() - tail_bytes);
  }
  if (target.file) {
    if (const std::string problem = target.file->write(bytes); !problem.empty())
      note_lost(target.file->path(), problem);
  }
  if (!options_.to_terminal) return;
  lines(stream).write(target.source, bytes);
  look_at_terminals();
}

void Output::note_lost(const std::string& name, const std::string& problem) {
  lost_ = true;
  note("tutti run: cannot write " + name + ": " + problem +
       "; the ranks continue, and their output there is lost (exit status " +
       std::to_string(exit_output_lost) + ")\n");
}

// Reports output that is lost because a terminal has failed. Nothing counts as lost if the
// terminal's reader has exited, since no one wants more output.
void Output::look_at_terminals() {
  for (const Terminal* terminal : {&out_, err_ ? &*err_ : nullptr}) {
    if (terminal_lost_ || terminal == nullptr) return;
    if (terminal->problem() == 0 || terminal->reader_gone()) continue;
    terminal_lost_ = true;
    note_lost(terminal->name(), std::strerror(terminal->problem()));
  }
}

void Output::finish(int rank) {
  for (const Stream stream : {Stream::out, Stream::err}) {
    lines(stream).finish(ranks_[static_cast<std::size_t>(rank)]->streams[static_cast<int>(stream)].source);
  }
  look_at_terminals();
}

std::vector<std::string> Output::last_lines(int rank) const {
  std::string_view tail = ranks_[static_cast<std::size_t>(rank)]->tail;
  while (tail.ends_with('\n')) tail.remove_suffix(1);
  std::vector<std::string> result;
  while (!tail.empty() && result.size() < tail_lines) {
    const std::size_t newline = tail.rfind('\n');
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    result.emplace_back(tail.substr(begin));
    tail = tail.substr(0, newline == std::string_view::npos ? 0 : newline);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

void Output::note(const std::string& lines_of_text) { lines(Stream::err).note(lines_of_text); }

std::size_t Output::backlog() const { return out_.backlog() + (err_ ? err_->backlog() : 0); }

void Output::discard_backlog() {
  out_.discard();
  if (err_) err_->discard();
}

void Output::on_progress(const std::function<void()>& callback) {
  out_.on_progress(callback);
  if (err_) err_->on_progress(callback);
}

}  // namespace tutti::tools
