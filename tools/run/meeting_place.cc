#include "tools/run/meeting_place.h"

#include <utility>

#include <tutti/config.h>
#include <tutti/credentials.h>

#include "tools/run/environment.h"

namespace tutti::tools {

Result<MeetingPlace> open_meeting_place(const Environment& environment, const std::string& address) {
  const Result<Config> config = Config::from_values(environment);
  if (!config.ok()) return config.status();
  const Result<security::Settings> settings = security::settings_from(*config);
  if (!settings.ok()) return settings.status();
  const Result<security::SharedCredentials> credentials = security::Credentials::create(*settings);
  if (!credentials.ok()) return credentials.status();
  Result<std::unique_ptr<tcp::StoreServer>> store =
      tcp::StoreServer::create({.addresses = {address}, .credentials = *credentials});
  if (!store.ok()) return store.status();
  const Result<int> master_port = find_free_port();
  if (!master_port.ok()) return master_port.status();
  return MeetingPlace{*std::move(store), address, *master_port};
}

}  // namespace tutti::tools
