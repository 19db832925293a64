#include "core/shown.h"

#include <algorithm>
#include <cctype>

#include <tutti/config.h>

namespace tutti {
namespace {

constexpr std::string_view masked = "(set)";
// These words occur in names of variables that hold secrets, such as PMI_SHARED_SECRET and SLURM_JWT.
constexpr std::string_view secret_words[] = {"AUTH", "COOKIE", "CREDENTIAL", "JWT",
                                             "KEY",  "PASS",   "SECRET",     "TOKEN"};

bool names_secret(std::string_view name) {
  for (const Config::Variable& variable : Config::variables()) {
    if (variable.name == name) return variable.type_name() == "secret";
  }
  if (name.starts_with("TUTTI_")) return true;  // may be a misspelt name of a secret
  std::string capitals(name);
  std::ranges::transform(capitals, capitals.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::ranges::any_of(secret_words,
                             [&](std::string_view word) { return capitals.find(word) != std::string::npos; });
}

bool is_port(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Returns the position of the '@' that ends the user and password in a URL, or npos if there is none. `text`
// begins with the URL's authority. A password may contain an unescaped '/', '?' or '#', although these
// characters normally end the authority. In doubt, this function masks too much rather than too little.
std::size_t end_of_login(std::string_view text) {
  const std::string_view authority = text.substr(0, text.find_first_of("/?#"));
  const std::size_t colon = authority.rfind(':');
  const std::size_t at = authority.rfind('@');
  if (colon == authority.npos) return at;
  const std::size_t before_parameters = text.substr(0, text.find('?')).rfind('@');
  if (before_parameters != text.npos || is_port(authority.substr(colon + 1))) return before_parameters;
  return text.rfind('@');
}

// Masks the secrets that a URL may contain: a user and password before an '@', and the values of secret
// parameters.
std::string masked_parts(std::string_view text) {
  const std::size_t scheme = text.find("://");
  std::size_t begin = scheme == text.npos ? 0 : scheme + 3;
  std::string result(text.substr(0, begin));
  if (const std::size_t at = end_of_login(text.substr(begin)); at != text.npos) {
    result += masked;
    begin += at;
  }
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find_first_of("?&", begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    const bool secret = equals != part.npos && names_secret(part.substr(0, equals));
    result += secret ? std::string(part.substr(0, equals + 1)).append(masked) : std::string(part);
    if (end < text.size()) result += text[end];
    begin = end + 1;
  }
  return result;
}

void append_escaped(std::string& result, std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      (result += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
    } else {
      (result += "\\x") += {digits[byte >> 4], digits[byte & 0xf]};
    }
  }
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (length == 0 || length > text.size() || lead > 0xf4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong sequences, surrogates and values beyond the last code point are not valid.
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f)) return 0;
  return length;
}

bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

std::string printable(std::string text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (plain) return text;
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t length = utf8_length(rest);
    const std::string_view sequence = rest.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(sequence)) {
      append_escaped(result, sequence);
    } else {
      result += sequence;
    }
    rest.remove_prefix(sequence.size());
  }
  return result;
}

std::string shown(std::string_view name, std::string_view value) {
  return names_secret(name) ? std::string(masked) : printable(masked_parts(value));
}

std::string_view unmeant_ends(std::string_view value) {
  if (value.ends_with('\r')) {
    return "it ends with a carriage return, as the lines of Windows files do; `sed -i 's/\\r$//' FILE` "
           "repairs "
           "the file that it comes from";
  }
  const bool quoted =
      value.size() > 1 && value.front() == value.back() && (value.front() == '"' || value.front() == '\'');
  if (quoted)
    return "the quotes are a part of it, since `docker run --env-file` keeps them; leave them out there";
  return {};
}

}  // namespace tutti
