#include <iostream>

#include <signal.h>

#include <tutti/address.h>
#include <tutti/credentials.h>
#include <tutti/store_server.h>

#include "rendezvous/launch/open_ports.h"
#include "tools/command_line.h"

namespace tutti::tools {
namespace {

// Serves the store until SIGTERM or SIGINT. Returns the exit status.
int serve(const tcp::StoreServerOptions& options) {
  // The signals are blocked before the server's thread starts, so that only `sigwait` below can
  // receive them.
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, nullptr);
  const auto server = tcp::StoreServer::create(options);
  if (!server.ok()) {
    std::cerr << "tutti store: " << server.status().message() << "\n";
    return exit_failure;
  }
  warn_of_open_ports(options.credentials, options.addresses);
  for (const auto& endpoint : (*server)->endpoints()) {
    std::cout << "serving at " << format_endpoint(endpoint.address, endpoint.port) << std::endl;
  }
  int signal = 0;
  sigwait(&ending, &signal);
  std::cerr << "tutti store: served " << (*server)->requests() << " requests\n";
  return 0;
}

}  // namespace

int store_command(const Arguments& arguments) {
  CLI::App app(
      "Serves the store at which ranks meet, until SIGTERM or SIGINT; then says how many\n"
      "requests it has served. Ranks find it by\n"
      "TUTTI_STORE=HOST:PORT; jobs that use it at the same time need different TUTTI_JOB_ID. With\n"
      "TUTTI_TOKEN or TUTTI_TOKEN_FILE, it accepts only processes with the same token.",
      "tutti store");
  tcp::StoreServerOptions options;
  std::string address = options.addresses.front();
  app.add_option("--port", options.port, "The port to listen on; 0: any free one")->required();
  app.add_option("--bind", address, "The address to listen on; empty: all addresses")->capture_default_str();
  if (const auto status = parse(app, arguments)) return *status;
  if (!address.empty() && !parse_address(address, options.port)) {
    return usage_error(app, "--bind needs an address like 10.0.0.1 or ::1, not `" + address + "`");
  }
  options.addresses = {address};

  const Result<security::Settings> settings = security::settings_from(Config::from_environment().take());
  if (!settings.ok()) {
    std::cerr << "tutti store: " << settings.status().message() << "\n";
    return exit_failure;
  }
  options.credentials = security::Credentials::create(*settings).take();
  options.ranks_hold = true;
  return serve(options);
}

}  // namespace tutti::tools
