#include "step/join_request.h"

#include <cerrno>
#include <random>

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "step/local_socket.h"

namespace berth::step {

namespace {

using nlohmann::json;

std::string file_of(const std::string& directory, std::uint32_t number) {
  return directory + "/join-" + std::to_string(number) + ".request";
}

}  // namespace

std::string join_socket(std::uint32_t number) { return "join-" + std::to_string(number) + ".sock"; }

Result<std::uint32_t> put_join(const std::string& directory, const JoinRequest& request) {
  const json body{{"words", request.words},
                  {"is_srun", request.is_srun},
                  {"on_terminal", request.on_terminal},
                  {"workdir", request.workdir}};
  const std::string text = body.dump(-1, ' ', false, json::error_handler_t::replace);
  std::random_device chance;
  for (int tries = 0; tries < 100; ++tries) {
    const std::uint32_t number = 1 + chance() % kMaxJoin;
    const Fd file(::open(file_of(directory, number).c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open() && errno == EEXIST) continue;
    if (!file.is_open() || !write_all(file.get(), text))
      return fail_by_errno("put a request into " + directory);
    return number;
  }
  return fail("cannot put a request into " + directory + ": there are too many");
}

Result<JoinRequest> take_join(const std::string& directory, std::uint32_t number) {
  const std::string path = file_of(directory, number);
  BERTH_TRY(const auto text, get_file(path));
  if (!text) return fail(path + ": there is no such request");
  ::unlink(path.c_str());
  const json body = json::parse(*text, nullptr, false);
  const auto wrong = [&] { return fail(path + ": is no request"); };
  if (!body.is_object() || !body.contains("words") || !body["words"].is_array() ||
      body["words"].empty())
    return wrong();
  JoinRequest request;
  for (const json& word : body["words"]) {
    if (!word.is_string()) return wrong();
    request.words.push_back(word.get<std::string>());
  }
  const auto flag = [&](const char* name) {
    return body.contains(name) && body[name].is_boolean() && body[name].get<bool>();
  };
  request.is_srun = flag("is_srun");
  request.on_terminal = flag("on_terminal");
  if (body.contains("workdir") && body["workdir"].is_string())
    request.workdir = body["workdir"].get<std::string>();
  return request;
}

void drop_join(const std::string& directory, std::uint32_t number) {
  ::unlink(file_of(directory, number).c_str());
}

}  // namespace berth::step
