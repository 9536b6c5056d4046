// Any bytes as a request, without sockets: an answer with a status we know, never a crash, a hang
// or a throw; every error says something in the form it promises. The input reads like HTTP: a line
// "METHOD TARGET", lines "name: value", an empty line, the body.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "api/api.h"
#include "base/check.h"
#include "support/fake_service.h"

namespace {

using namespace berth;
using namespace berth::api;

/// A service with a few jobs and its API; made anew now and then, because submits add up.
struct World {
  testing::FakeService service;
  Api api{service, {.requests_per_second = 0, .heartbeat = {}}};
  int used = 0;

  World() {
    service.add_token("t", {"root", 0, 0, Role::Admin});
    for (int i = 0; i < 3; ++i) {
      JobSpec spec;
      spec.command = {"true"};
      (void)service.submit({"root", 0, 0, Role::Admin}, spec);
    }
    service.run(2);
    service.run(3);
    service.finish(3, LiveState::Failed, 1);
  }
};

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Method method_from(std::string_view text) {
  for (auto i = 0; i <= static_cast<int>(Method::Other); ++i) {
    if (to_string(static_cast<Method>(i)) == text) return static_cast<Method>(i);
  }
  return Method::Other;
}

Head head_from(std::string_view& text) {
  Head head;
  head.authorization = "Bearer t";
  head.content_type = "application/json";
  const std::string_view first = take_line(text);
  const std::size_t space = std::min(first.find(' '), first.size());
  head.method = method_from(first.substr(0, space));
  head.target = first.substr(std::min(space + 1, first.size()));
  for (auto line = take_line(text); !line.empty(); line = take_line(text)) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    const std::string value(line.substr(colon + 2));
    if (line.starts_with("idempotency-key")) head.idempotency_key = value;
    if (line.starts_with("last-event-id")) head.last_event_id = value;
    if (line.starts_with("content-type")) head.content_type = value;
    if (line.starts_with("authorization")) head.authorization = value;
  }
  return head;
}

void check(const Response& response) {
  static const std::set<int> known{200, 201, 204, 400, 401, 403, 404, 405, 409, 413, 414, 415, 422};
  BERTH_CHECK(known.contains(response.status), "a status of the document");
  for (const auto& [name, value] : response.headers)
    BERTH_CHECK(value.find_first_of("\r\n") == std::string::npos, "a header is one line");
  if (response.content_type != "application/json" || response.body.empty()) return;
  const auto json = nlohmann::json::parse(response.body, nullptr, false);
  BERTH_CHECK(!json.is_discarded(), "an answer is JSON");
  if (response.status >= 400)
    BERTH_CHECK(!json.at("error").at("messages").empty(), "an error says something");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::unique_ptr<World> world;
  if (!world || ++world->used == 500) world = std::make_unique<World>();
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const Head head = head_from(text);
  auto admitted = world->api.admit(head, text.empty() ? Api::Body::None : Api::Body::Announced);
  if (!admitted) {
    check(admitted.error());
    return 0;
  }
  std::promise<Answered> promise;
  world->api.answer(*std::move(admitted), std::string(text),
                    [&](Answered answered) { promise.set_value(std::move(answered)); });
  const Answered answered = promise.get_future().get();
  check(answered.response);
  if (answered.source) {
    answered.source->start([] {});
    for (int i = 0; i < 3; ++i) (void)answered.source->next(BodySource::Because::Idle);
  }
  return 0;
}
