#include "tools/run/spellings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <tutti/config_values.h>

namespace tutti::tools {
namespace {

// A `Spelling` translates an option of mpirun, Hydra or horovodrun, written without dashes. The
// translation is an option of `tutti run`, perhaps with its value. It is empty if the option has no
// effect here.
struct Spelling {
  std::string_view name;
  std::string_view option;
  std::string_view value = {};
};

constexpr Spelling spellings[] = {
    {"n", "-n"},
    {"np", "-n"},
    {"c", "-n"},
    {"num-proc", "-n"},
    {"hostfile", "--hostfile"},
    {"machinefile", "--hostfile"},
    {"f", "--hostfile"},
    {"H", "-H"},
    {"host", "-H"},
    {"hosts", "-H"},
    {"N", "-N"},
    {"npernode", "-N"},
    {"ppn", "-N"},
    {"pernode", "-N", "1"},
    {"map-by", "--map-by"},
    {"bynode", "--map-by", "node"},
    {"byslot", "--map-by", "slot"},
    {"bind-to", "--bind-to"},
    {"bind-to-core", "--bind-to", "core"},
    {"oversubscribe", "--oversubscribe"},
    {"nooversubscribe", ""},
    {"x", "-x"},
    {"wdir", "--wdir"},
    {"wd", "--wdir"},
    {"prefix", "--prefix"},
    {"p", "--ssh-port"},
    {"tag-output", "--tag-output"},
    {"timestamp-output", "--timestamp-output"},
    {"prefix-output-with-timestamp", "--timestamp-output"},
    {"output-filename", "--output-filename"},
    {"merge-stderr-to-stdout", "--merge-stderr-to-stdout"},
    {"enable-recovery", "--enable-recovery"},
    {"genvall", "-x", "*"},
    {"allow-run-as-root", ""},
    {"q", ""},
    {"quiet", ""},
    {"report-bindings", ""},
    {"display-map", ""},
    {"display-allocation", ""},
    {"verbose", ""},
    {"gloo", ""},
    {"mpi", ""},
};

std::string_view without_dashes(std::string_view word) {
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  return word;
}

const Spelling* find_spelling(std::string_view name) {
  const auto* const found = std::ranges::find(spellings, name, &Spelling::name);
  return found == std::end(spellings) ? nullptr : found;
}

// Returns the N of `ppr:N:node`, or an empty text if the value of --map-by has another form.
std::string_view ranks_per_host(std::string_view map_by) {
  constexpr std::string_view before = "ppr:", after = ":node";
  if (!map_by.starts_with(before) || !map_by.ends_with(after)) return {};
  if (map_by.size() <= before.size() + after.size()) return {};
  return map_by.substr(before.size(), map_by.size() - before.size() - after.size());
}

Status mistake(const std::string& text) { return Status(Code::invalid_argument, text); }

// `Translator` reads the words from left to right.
class Translator {
 public:
  Translator(const Arguments& words, const TakesValue& takes_value)
      : words_(words), takes_value_(takes_value) {}

  Result<Translation> run() {
    while (next_ < words_.size() && words_[next_].size() > 1 && words_[next_][0] == '-') {
      const std::string& word = words_[next_++];
      if (word == "--") return finish(true);
      if (Status problem = option(word); !problem.ok()) return problem;
    }
    return finish(false);
  }

 private:
  Result<Translation> finish(bool after_dashes) {
    result_.program.assign(words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
    if (!after_dashes && std::ranges::find(result_.program, ":") != result_.program.end()) {
      return mistake(
          "several programs, separated by `:`, cannot be started; if the `:` belongs to one program, "
          "write -- in front of the program");
    }
    return std::move(result_);
  }

  Status option(const std::string& word) {
    const std::string_view name = without_dashes(word);
    if (name == "mca" || name == "gmca") return parameter(word);
    if (name == "genv") return variable(word);
    if (name == "genvlist") return variables(word);
    if (name == "network-interface" || name == "network-interfaces") return interfaces(word);
    if (const Spelling* spelling = find_spelling(name)) {
      spelled(*spelling);
    } else if (!spelled_with_value(name)) {
      result_.options.push_back(word);
      if (takes_value_(word) && next_ < words_.size()) result_.options.push_back(words_[next_++]);
    }
    return {};
  }

  void spelled(const Spelling& spelling) {
    const std::string option(spelling.option);
    if (option.empty()) return;
    if (!spelling.value.empty()) {
      add(option, std::string(spelling.value));
    } else if (takes_value_(option) && next_ < words_.size()) {
      add(option, words_[next_++]);
    } else {
      result_.options.push_back(option);
    }
  }

  // Translates NAME=VALUE. Returns false if the text is not an option with a value. A name of one
  // letter is not translated, because its value follows the letter without `=`.
  bool spelled_with_value(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == text.npos || equals < 2) return false;
    const Spelling* spelling = find_spelling(text.substr(0, equals));
    if (spelling == nullptr || !spelling->value.empty()) return false;
    const std::string option(spelling->option);
    if (!takes_value_(option)) return false;
    add(option, std::string(text.substr(equals + 1)));
    return true;
  }

  // Adds an option and its value. Open MPI's form `--map-by ppr:N:node` becomes -N.
  void add(const std::string& option, const std::string& value) {
    const std::string_view per_host = option == "--map-by" ? ranks_per_host(value) : std::string_view();
    result_.options.push_back(per_host.empty() ? option : "-N");
    result_.options.push_back(per_host.empty() ? value : std::string(per_host));
  }

  // Translates -mca NAME VALUE, which sets a parameter of Open MPI.
  Status parameter(const std::string& word) {
    if (words_.size() - next_ < 2) return mistake(word + " needs NAME VALUE");
    const std::string& name = words_[next_++];
    const std::string& value = words_[next_++];
    if (name == "orte_abort_on_non_zero_status") {
      const std::optional<bool> abort = parse_boolean(value);
      if (!abort) return mistake(word + " " + name + " needs 0 or 1, not `" + value + "`");
      result_.abort_on_non_zero = *abort;
    } else if (name == "btl_tcp_if_include") {
      result_.socket_ifname = "=" + value;
    } else if (name == "btl_tcp_if_exclude") {
      result_.socket_ifname = "^=" + value;
    } else if (name == "plm_rsh_agent") {
      add("--agent", value);
    } else if (name == "plm_rsh_args") {
      add("--ssh-args", value);
    } else {
      result_.ignored.push_back(word + " " + name + " " + value);
    }
    return {};
  }

  // Translates -genv NAME VALUE.
  Status variable(const std::string& word) {
    if (words_.size() - next_ < 2) return mistake(word + " needs NAME VALUE");
    add("-x", words_[next_] + "=" + words_[next_ + 1]);
    next_ += 2;
    return {};
  }

  // Translates -genvlist NAME,NAME...
  Status variables(const std::string& word) {
    if (next_ == words_.size()) return mistake(word + " needs NAME,NAME...");
    for (const std::string& name : parse_list(words_[next_++])) add("-x", name);
    return {};
  }

  // Translates --network-interface NAME,NAME...
  Status interfaces(const std::string& word) {
    if (next_ == words_.size()) return mistake(word + " needs NAME,NAME...");
    result_.socket_ifname = "=" + words_[next_++];
    return {};
  }

  const Arguments& words_;
  const TakesValue& takes_value_;
  std::size_t next_ = 0;
  Translation result_;
};

}  // namespace

Result<Translation> translate(const Arguments& words, const TakesValue& takes_value) {
  return Translator(words, takes_value).run();
}

}  // namespace tutti::tools
