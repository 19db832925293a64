#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <mutex>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <tutti/log.h>

#include "core/descriptor.h"
#include "core/new_file.h"
#include "core/shown.h"

namespace tutti::log {
namespace {

constexpr std::array<std::string_view, 6> level_names = {"off", "error", "warn", "info", "debug", "trace"};

std::atomic<Level> threshold{Level::warn};
std::atomic<std::int64_t> rank_and_size{-1};

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "?";
}

// The logger is not added to spdlog's registry, since the registry belongs to the host program.
std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("tutti", std::move(sink));
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%f %v");
  return logger;
}

// A `FileSink` writes to an open file. spdlog's own sink would open any kind of file, and would block on a
// pipe until the pipe has a reader.
class FileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FileSink(Descriptor file) : file_(std::move(file)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view left(line.data(), line.size());
    while (!left.empty()) {
      const ssize_t written = ::write(file_.get(), left.data(), left.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) spdlog::throw_spdlog_ex("cannot write the log", errno);
      left.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  void flush_() override {}

  const Descriptor file_;
};

struct Sink {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> logger = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const std::string host = host_name();
};

// The sink is never destroyed, so that lines can be written while the process exits.
Sink& sink() {
  static Sink* const instance = new Sink;
  return *instance;
}

std::string prefix(Level level) {
  const std::int64_t where = rank_and_size.load(std::memory_order_relaxed);
  std::string text(to_string(level));
  text += " [tutti ";
  if (where >= 0) text += std::to_string(where >> 32) + "/" + std::to_string(where & 0xffffffff) + " ";
  return text + sink().host + ":" + std::to_string(getpid()) + "] ";
}

}  // namespace

std::string_view to_string(Level level) {
  const auto index = static_cast<std::size_t>(level);
  return index < level_names.size() ? level_names[index] : "unknown";
}

std::optional<Level> parse_level(std::string_view name) {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == name) return static_cast<Level>(i);
  }
  return std::nullopt;
}

Status configure(Level level, const std::string& file) {
  spdlog::sink_ptr target;
  if (file.empty()) {
    target = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  } else {
    std::error_code ignored;  // if this fails, opening the file fails too
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
    Result<Descriptor> opened = open_to_append(file);
    if (!opened.ok()) return opened.status().with_context("cannot log to '" + file + "'");
    target = std::make_shared<FileSink>(std::move(opened).take());
  }
  auto logger = make_logger(std::move(target));
  {
    const std::lock_guard lock(sink().mutex);
    sink().logger = std::move(logger);
  }
  threshold.store(level, std::memory_order_relaxed);
  return {};
}

void set_rank(int rank, int size) {
  rank_and_size.store((static_cast<std::int64_t>(rank) << 32) | size, std::memory_order_relaxed);
}

bool enabled(Level level) {
  return level != Level::off && level <= threshold.load(std::memory_order_relaxed);
}

void write(Level level, std::string_view text) {
  if (!enabled(level)) return;
  std::shared_ptr<spdlog::logger> logger;
  {
    const std::lock_guard lock(sink().mutex);
    logger = sink().logger;
  }
  const FileSizeSignalBlocked no_signal;
  // If the sink throws, for example because the disk is full, spdlog catches the exception and reports it on
  // stderr, at most once a second.
  logger->log(spdlog::level::info, printable(prefix(level) + std::string(text)));
}

}  // namespace tutti::log
