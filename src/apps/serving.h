// What stands in front of and around every live service of this program: its sockets and the API,
// signals, and whoever started us and wants to know how it goes. Which service that is, is the
// caller's matter (apps/serve.cpp, apps/serve_advice.cpp).
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string_view>

#include "api/server.h"
#include "base/log.h"
#include "base/result.h"
#include "daemon/service.h"

namespace berth {

/// Made with this mode where it is missing. One that is there is somebody's, perhaps everybody's,
/// and stays as it is.
[[nodiscard]] Result<void> make_directory(const std::filesystem::path& path, mode_t mode);

/// Before the first thread is made: signals are waited for, nothing is done inside a handler.
void block_signals();

/// One datagram for whoever started us, if it asked for it: "READY=1".
void notify(std::string_view text);

struct Served {
  Service& service;
  std::function<Result<void>()> run;  // until it is stopped
  std::function<void()> stop;         // from another thread
  std::function<void()> reload;       // the same; the configuration is to be read again
};
/// Answers on these sockets until the service ends or somebody ends us. After block_signals().
[[nodiscard]] Result<void> serve_until_stopped(api::Listening listening, api::ServerOptions options,
                                               const Served& served);

}  // namespace berth
