// nodes, node, policy, share, token: the cluster itself and who may use it.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/split.h"
#include "base/suggest.h"
#include "client/commands.h"
#include "client/draft.h"
#include "client/moment.h"
#include "client/tables.h"
#include "wire/requests.h"
#include "wire/tree.h"

namespace berth::client {

namespace {

constexpr std::int64_t kMaxLimit = wire::kMany;

int misuse(const Call& call, std::string_view text) { return call.console.complain(kMisuse, text); }

/// One question, one answer: as JSON, or made readable.
template <class Show>
int ask(const Call& call, Result<std::string> (*question)(Scheduler&, const Call&), Show show) {
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const auto body = question(*scheduler, call);
  if (!body) return call.console.complain(kFailure, body.error());
  if (call.has("json")) {
    call.console.put_json(*body);
    return call.console.done();
  }
  const Result<std::string> text = show(*body);
  if (!text) return call.console.complain(kFailure, text.error());
  call.console.put(*text);
  return call.console.done();
}

Result<std::string> quiet(const std::string&) { return std::string{}; }

// Shares and hours may be fractions; counts go through parse_count().
Result<double> amount(const Call& call, std::string_view option) {
  const std::string text = call.value(option);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 1e9)
    return fail(fmt::format("share: --{}={} must be a number of 0 or more", option, text));
  return value;
}

std::string policy_text(const ClusterView& cluster) {
  std::string text = harmless(cluster.policy) + "\n";
  for (const auto& [key, value] : cluster.settings)
    text += fmt::format("  {} = {}\n", harmless(key), harmless(value));
  return text;
}

}  // namespace

int run_nodes(const Call& call) {
  const TableStyle style{call.console.has_colour(), call.console.width(), unix_now()};
  return ask(
      call, [](Scheduler& scheduler, const Call&) { return scheduler.get("/nodes"); },
      [&](const std::string& body) -> Result<std::string> {
        BERTH_TRY(const auto nodes, nodes_from(body));
        return node_table(nodes, style);
      });
}

// Nodes are done one by one; the first failure ends it, and what was done stays done.
int run_node(const Call& call) {
  const auto& words = call.operands();
  static const std::vector<std::string> kNodeStates{"drain", "resume", "down"};
  if (words.size() < 2)
    return misuse(call, "node: which action on which node? As in `berth node drain n3`");
  if (std::ranges::find(kNodeStates, words.front()) == kNodeStates.end())
    return misuse(call, fmt::format("node: unknown action '{}'{}", words.front(),
                                    suggestion(words.front(), kNodeStates)));
  auto scheduler = call.scheduler();
  if (!scheduler) return call.console.complain(kMisuse, scheduler.error());
  const NodeReason reason{call.value("reason")};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto answer = scheduler->send(
        "POST", fmt::format("/nodes/{}/{}", percent_encoded(words[i]), words.front()),
        wire::to_sorted_json(reason));
    if (!answer) return call.console.complain(kFailure, answer.error());
    if (call.has("json")) call.console.put_json(*answer);
  }
  return call.console.done();
}

int run_policy(const Call& call) {
  const auto& words = call.operands();
  const auto show = [](const std::string& body) -> Result<std::string> {
    BERTH_TRY(const auto cluster, cluster_from(body));
    return policy_text(cluster);
  };
  if (words.empty()) {
    if (call.has("set"))
      return misuse(call, "policy: of which? As in `berth policy set las --set quantum=60`");
    return ask(
        call, [](Scheduler& scheduler, const Call&) { return scheduler.get("/policy"); }, show);
  }
  if (words.front() != "set" || words.size() != 2)
    return misuse(call, "policy: as in `berth policy`, or `berth policy set las --set quantum=60`");
  for (const std::string& setting : call.parsed.values("set"))
    if (setting.find('=') == std::string::npos)
      return misuse(call, fmt::format("policy: --set {} is not KEY=VALUE", setting));
  return ask(
      call,
      [](Scheduler& scheduler, const Call& the) {
        PolicySetting policy{the.operands()[1], {}};
        for (const std::string& setting : the.parsed.values("set")) {
          const auto equals = setting.find('=');
          policy.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
        }
        return scheduler.send("PUT", "/policy", wire::to_sorted_json(policy));
      },
      show);
}

namespace {

Result<std::string> put_share(Scheduler& scheduler, const Call& call) {
  ShareChange change;
  change.kind = call.has("group") ? "group" : "user";
  change.name = call.operands()[1];
  if (call.has("shares")) {
    BERTH_TRY(change.shares, amount(call, "shares"));
  }
  if (call.has("gpu-limit")) {
    BERTH_TRY(const auto gpus, parse_count(call.value("gpu-limit"), 0, kMaxLimit));
    change.gpu_limit = static_cast<std::int32_t>(gpus);
  }
  if (call.has("job-limit")) {
    BERTH_TRY(const auto jobs, parse_count(call.value("job-limit"), 0, kMaxLimit));
    change.job_limit = static_cast<std::int32_t>(jobs);
  }
  if (call.has("gpu-hours")) {
    BERTH_TRY(const double hours, amount(call, "gpu-hours"));
    change.gpu_seconds_limit = hours * 3'600;
  }
  if (call.has("members")) {
    change.members.emplace();
    for (const std::string_view name : split(call.value("members"), ','))
      if (!name.empty()) change.members->emplace_back(name);
  }
  return scheduler.send("PUT", "/shares", wire::to_sorted_json(change));
}

Result<std::string> show_shares(const std::string& body) {
  BERTH_TRY(const auto shares, shares_from(body));
  return share_table(shares);
}

// Who may make which token is for the scheduler to say.
Result<std::string> make_token(Scheduler& scheduler, const Call& call) {
  TokenRequest request;
  request.name = call.operands()[1];
  if (call.has("user")) request.user = call.value("user");
  if (call.has("role")) request.role = call.value("role");
  if (call.has("expires")) {
    BERTH_TRY(request.expires, parse_moment(call.value("expires"), unix_now()));
  }
  return scheduler.send("POST", "/tokens", wire::to_sorted_json(request));
}

/// The secret alone on standard output, so that it can be sent to a file.
Result<std::string> show_new_token(const std::string& body) {
  BERTH_TRY(const std::string token, new_token_from(body));
  return harmless(token) + "\n";
}

}  // namespace

int run_share(const Call& call) {
  const auto& words = call.operands();
  if (words.empty() || (words.size() == 1 && words.front() == "list"))
    return ask(
        call, [](Scheduler& scheduler, const Call&) { return scheduler.get("/shares"); },
        show_shares);
  if (words.size() != 2 || words.front() != "set")
    return misuse(call, "share: as in `berth share list` or `berth share set ann --gpu-limit 8`");
  const bool says_something = call.has("shares") || call.has("gpu-limit") ||
                              call.has("job-limit") || call.has("gpu-hours") || call.has("members");
  if (!says_something)
    return misuse(call,
                  "share: set what? --shares, --gpu-limit, --job-limit, --gpu-hours or --members");
  if (call.has("members") && !call.has("group"))
    return misuse(call, "share: --members are of a group: say --group as well");
  for (const std::string_view option : {"shares", "gpu-hours"})
    if (call.has(option))
      if (const auto fine = amount(call, option); !fine)
        return call.console.complain(kMisuse, fine.error());
  for (const std::string_view option : {"gpu-limit", "job-limit"})
    if (call.has(option))
      if (const auto fine = parse_count(call.value(option), 0, kMaxLimit); !fine)
        return misuse(call, fmt::format("share: --{}: {}", option, fine.error().text()));
  return ask(call, put_share, quiet);
}

int run_token(const Call& call) {
  const auto& words = call.operands();
  if (words.empty() || (words.size() == 1 && words.front() == "list"))
    return ask(
        call, [](Scheduler& scheduler, const Call&) { return scheduler.get("/tokens"); },
        [](const std::string& body) -> Result<std::string> {
          BERTH_TRY(const auto tokens, tokens_from(body));
          return token_table(tokens);
        });
  if (words.size() == 2 && words.front() == "make") {
    if (call.has("expires"))
      if (const auto fine = parse_moment(call.value("expires"), unix_now()); !fine)
        return misuse(call, "token: --expires: " + fine.error().text());
    const int code = ask(call, make_token, show_new_token);
    // Only people need to be told; a script gets the token alone.
    if (code == kSuccess && call.console.is_terminal())
      call.console.note("shown once: keep it in ~/.config/berth/token (chmod 600) or BERTH_TOKEN");
    return code;
  }
  if (words.size() == 2 && words.front() == "revoke")
    return ask(
        call,
        [](Scheduler& scheduler, const Call& the) {
          return scheduler.send("DELETE", "/tokens/" + percent_encoded(the.operands()[1]), "");
        },
        quiet);
  return misuse(
      call, "token: as in `berth token make NAME`, `berth token list`, `berth token revoke NAME`");
}

}  // namespace berth::client
