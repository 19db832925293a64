#include <cstdio>

#include <tutti/core/status.h>
#include <tutti/core/types.h>

int main() {
  const tutti::Status status(tutti::Code::timeout, "as expected");
  if (tutti::parse_data_type("float32") != tutti::DataType::float32) return 1;
  try {
    throw tutti::Error(status);
  } catch (const tutti::Error& error) {
    std::printf("%s\n", error.what());
    return error.code() == tutti::Code::timeout ? 0 : 1;
  }
}
