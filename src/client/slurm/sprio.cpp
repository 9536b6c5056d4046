// sprio and sshare: what the order of waiting jobs is made from, and who has used how much.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/terminal_text.h"
#include "client/commands.h"
#include "client/job_ids.h"
#include "client/slurm/facts.h"
#include "client/slurm/format.h"
#include "client/slurm/help.h"
#include "client/slurm/sheet.h"
#include "client/slurm_names.h"

namespace berth::client {

using namespace slurm;

namespace {

using enum Takes;

constexpr std::array kPriorityOptions{
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster: there is one"},
    OptionSpec{"federation", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"format", 'o', Value, "FORMAT", "columns, as in '%.15i %9r %.10Y'"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"jobs", 'j', Value, "IDS", "only these jobs"},
    OptionSpec{"local", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"long", 'l', Nothing, "", "with user, account and nice"},
    OptionSpec{"noheader", 'h', Nothing, "", "no line of titles"},
    OptionSpec{"norm", 'n', Nothing, "", "each factor from 0 to 1 among the jobs that wait"},
    OptionSpec{"partition", 'p', Value, "NAMES", "only of these partitions"},
    OptionSpec{"sibling", 0, Nothing, "", "nothing: there is one cluster"},
    OptionSpec{"sort", 'S', Value, "LETTERS", "by these columns; - turns round (i)"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"user", 'u', Value, "NAMES", "only of these users"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
    OptionSpec{"weights", 'w', Nothing, "", "the policy and its settings instead of weights"},
};

constexpr HelpPage kPriorityPage{
    .name = "sprio",
    .operands = "",
    .summary = "what the order of waiting jobs is made from",
    .more =
        "Berth adds up no weights: a policy orders the jobs (berth policy). The columns are what "
        "policies\nlook at: PRIORITY is the number of the request (sbatch --priority), AGE the "
        "seconds since its submit,\nFAIRSHARE the GPU seconds its account has used, for each of "
        "its shares: fewer are better.\nFor one job `berth why ID` says what it waits for and "
        "its place.",
    .examples = "sprio\nsprio -j 12\nsprio -w\nsprio -h -o '%i %Y %A'"};

struct Waiting {
  const JobRow& job;
  double age = 0;
  double used = 0;  // for each share
};

constexpr std::array kColumns{ColumnName{"", 'i', "JOBID"},     ColumnName{"", 'r', "PARTITION"},
                              ColumnName{"", 'u', "USER"},      ColumnName{"", 'o', "ACCOUNT"},
                              ColumnName{"", 'Y', "PRIORITY"},  ColumnName{"", 'y', "PRIORITY"},
                              ColumnName{"", 'A', "AGE"},       ColumnName{"", 'a', "AGE"},
                              ColumnName{"", 'F', "FAIRSHARE"}, ColumnName{"", 'f', "FAIRSHARE"},
                              ColumnName{"", 'N', "NICE"},      ColumnName{"", 'S', "SITE"},
                              ColumnName{"", 'n', "QOSNAME"},   ColumnName{"", 'c', "CLUSTER"}};
constexpr auto kPriorityDefault = "%.15i %9r %.10Y %.10A %.12F";
constexpr auto kPriorityNorm = "%.15i %9r %.10y %.10a %.12f";
constexpr auto kPriorityLong = "%.15i %9r %.8u %.10o %.10Y %.10A %.12F %.6N";

struct Most {
  double priority = 0, age = 0, used = 0;
};

std::string priority_value(const Waiting& one, std::size_t column, const Most& most,
                           const std::string& cluster) {
  const auto part = [](double value, double whole) {
    return fmt::format("{:.7f}", whole > 0 ? value / whole : 0);
  };
  switch (kColumns[column].letter) {
    case 'i': return one.job.slurm_id();
    case 'r': return partition_of(one.job);
    case 'u': return one.job.spec->user;
    case 'o': return account_name(one.job);
    case 'Y': return fmt::to_string(one.job.spec->priority);
    case 'y': return part(one.job.spec->priority, most.priority);
    case 'A': return fmt::format("{:.0f}", one.age);
    case 'a': return part(one.age, most.age);
    case 'F': return fmt::format("{:.0f}", one.used);
    case 'f': return part(one.used, most.used);
    case 'N': return fmt::to_string(-std::min(0, one.job.spec->priority));
    case 'n': return std::string(kQos);
    case 'c': return cluster;
    default: return "0";
  }
}

/// Of its group if it names one, or of its user.
double used_per_share(const std::vector<ShareView>& shares, const JobRow& job) {
  const bool is_group = !job.spec->group.empty();
  for (const ShareView& share : shares)
    if (share.kind == (is_group ? "group" : "user") && share.name == account_name(job))
      return share.gpu_seconds / std::max(1e-9, share.shares);
  return 0;
}

Result<std::vector<ShareView>> shares_at(Scheduler& scheduler) {
  BERTH_TRY(const std::string body, scheduler.get("/shares"));
  return shares_from(body);
}

std::string weights_text(const ClusterView& cluster) {
  std::string text = fmt::format("Policy: {}\n", harmless(cluster.policy));
  for (const auto& [key, value] : cluster.settings)
    text += fmt::format("  {} = {}\n", harmless(key), harmless(value));
  return text;
}

void sort_waiting(std::vector<Waiting>& rows, const std::string& order) {
  const bool is_turned = order.starts_with('-');
  const char letter = order.empty() ? 'i'
                                    : order[order.find_first_not_of("+-") == std::string::npos
                                                ? 0
                                                : order.find_first_not_of("+-")];
  const auto key = [&](const Waiting& one) -> double {
    if (letter == 'Y' || letter == 'y') return one.job.spec->priority;
    if (letter == 'A' || letter == 'a') return one.age;
    if (letter == 'F' || letter == 'f') return one.used;
    return static_cast<double>(one.job.number);
  };
  std::vector<std::size_t> places(rows.size());
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) {
    return is_turned ? key(rows[b]) < key(rows[a]) : key(rows[a]) < key(rows[b]);
  });
  std::vector<Waiting> sorted;
  for (const std::size_t place : places) sorted.push_back(rows[place]);
  rows.swap(sorted);
}

Result<std::string> priorities(Scheduler& scheduler, const Parsed& parsed) {
  BERTH_TRY(const ClusterView cluster, scheduler.cluster());
  if (parsed.has("weights")) return weights_text(cluster);
  const std::string text = parsed.has("format") ? parsed.value("format")
                           : parsed.has("long") ? kPriorityLong
                           : parsed.has("norm") ? kPriorityNorm
                                                : kPriorityDefault;
  BERTH_TRY(const Format format, parse_format(text, kColumns));
  JobQuery query;
  query.states = {LiveState::Pending};
  if (parsed.has("jobs")) {
    BERTH_TRY(query.ids, resolve_jobs(scheduler, {parsed.value("jobs")}, BareNumber::WholeArray));
  }
  BERTH_TRY(const JobRows jobs, scheduler.jobs(query));
  BERTH_TRY(const auto shares, shares_at(scheduler));
  std::vector<Waiting> rows;
  Most most;
  for (const JobRow& job : jobs.jobs) {
    if (!is_listed(parsed.value("user"), job.spec->user) ||
        !is_listed(parsed.value("partition"), partition_of(job)))
      continue;
    const double age =
        std::max(0.0, static_cast<double>(unix_now()) - static_cast<double>(job.submitted) / 1e6);
    rows.push_back({job, age, used_per_share(shares, job)});
    most.priority = std::max(most.priority, double{0} + job.spec->priority);
    most.age = std::max(most.age, age);
    most.used = std::max(most.used, rows.back().used);
  }
  if (rows.empty() && (parsed.has("jobs") || parsed.has("user")))
    return fail("Unable to find jobs matching user/id(s) specified");
  sort_waiting(rows, parsed.value("sort"));
  std::string out;
  if (!parsed.has("noheader")) out += format_titles(format, kColumns);
  for (const Waiting& row : rows)
    out += format_line(format, [&](std::size_t column) {
      return priority_value(row, column, most, cluster.name);
    });
  return out;
}

constexpr std::array kShareOptions{
    OptionSpec{"accounts", 'A', Value, "NAMES", "only these accounts"},
    OptionSpec{"all", 'a', Nothing, "", "everybody's, as far as you may see them"},
    OptionSpec{"clusters", 'M', Value, "NAMES", "of this cluster: there is one"},
    OptionSpec{"delimiter", 0, Value, "TEXT", "between values of -p and -P (|)"},
    OptionSpec{"format", 'o', Value, "FIELDS", "as in account,user,rawusage%12"},
    OptionSpec{"help", 0, Nothing, "", "this text"},
    OptionSpec{"helpformat", 'e', Nothing, "", "the fields of -o"},
    OptionSpec{"long", 'l', Nothing, "", "with NormUsage, LevelFS and limits"},
    OptionSpec{"noheader", 'n', Nothing, "", "no titles (-h as well)"},
    OptionSpec{"", 'h', Nothing, "", "no titles"},
    OptionSpec{"parsable", 'p', Nothing, "", "values between delimiters, one at the end too"},
    OptionSpec{"parsable2", 'P', Nothing, "", "values between delimiters"},
    OptionSpec{"partition", 'm', Nothing, "", "nothing: shares are not by partition"},
    OptionSpec{"usage", 0, Nothing, "", "the options in a paragraph"},
    OptionSpec{"Users", 'U', Nothing, "", "users alone"},
    OptionSpec{"users", 'u', Value, "NAMES", "only of these users"},
    OptionSpec{"verbose", 'v', Nothing, "", "nothing more"},
    OptionSpec{"version", 'V', Nothing, "", "print the version"},
};

constexpr HelpPage kSharePage{
    .name = "sshare",
    .operands = "",
    .summary = "shares and use of users and groups",
    .more =
        "RawUsage is GPU seconds, of which old ones count less (berth share). FairShare is "
        "2^(-EffectvUsage /\nNormShares): 1 for who has used nothing, 0.5 for who has used his "
        "share. Policies that share use the\namounts, not this figure.",
    .examples = "sshare -a\nsshare -u ann -P -o user,rawusage\nsshare -l"};

const std::vector<SheetField>& share_fields() {
  static const std::vector<SheetField> all{
      {"Account", 20, true}, {"User", 10},        {"RawShares", 10},    {"NormShares", 11},
      {"RawUsage", 11},      {"NormUsage", 11},   {"EffectvUsage", 13}, {"FairShare", 10},
      {"LevelFS", 10},       {"GrpTRESMins", 30}, {"TRESRunMins", 30},  {"ID", 6},
      {"Cluster", 10},       {"Partition", 10}};
  return all;
}
constexpr auto kShareDefault = "account,user,rawshares,normshares,rawusage,effectvusage,fairshare";
constexpr auto kShareLong =
    "account,user,rawshares,normshares,rawusage,normusage,effectvusage,fairshare,levelfs,"
    "grptresmins,tresrunmins";

struct Totals {
  double shares = 0, used = 0;
};

std::string share_value(const ShareView& share, std::string_view name, const Totals& all,
                        const std::string& cluster) {
  const bool is_root = share.kind.empty();
  const double part = all.shares > 0 ? share.shares / all.shares : 0;
  const double used = is_root        ? (all.used > 0 ? 1 : 0)
                      : all.used > 0 ? share.gpu_seconds / all.used
                                     : 0;
  if (name == "Account") return is_root ? "root" : " " + share.name;
  if (name == "User") return share.kind == "user" ? share.name : "";
  if (name == "RawUsage") return fmt::format("{:.0f}", is_root ? all.used : share.gpu_seconds);
  if (name == "EffectvUsage" || name == "NormUsage") return fmt::format("{:.6f}", used);
  if (name == "Cluster") return cluster;
  if (is_root) return {};
  if (name == "RawShares") return fmt::format("{:g}", share.shares);
  if (name == "NormShares") return fmt::format("{:.6f}", part);
  if (name == "FairShare") return fmt::format("{:.6f}", part > 0 ? std::exp2(-used / part) : 0);
  if (name == "LevelFS") return used > 0 ? fmt::format("{:.6f}", part / used) : "inf";
  if (name == "GrpTRESMins" && share.gpu_seconds_limit > 0)
    return fmt::format("gres/gpu={:.0f}", share.gpu_seconds_limit / 60);
  if (name == "TRESRunMins") return fmt::format("gres/gpu={}", share.gpus_now);
  return {};
}

Result<std::string> share_page(Scheduler& scheduler, const Parsed& parsed) {
  BERTH_TRY(const auto columns, sheet_columns(parsed.has("format") ? parsed.value("format")
                                              : parsed.has("long") ? kShareLong
                                                                   : kShareDefault,
                                              share_fields()));
  BERTH_TRY(const ClusterView cluster, scheduler.cluster());
  BERTH_TRY(const auto shares, shares_at(scheduler));
  BERTH_TRY(const std::string me, scheduler.name_of(std::string(kMe)));
  const bool is_all = parsed.has("all") || parsed.has("users") || parsed.has("accounts");
  Totals all;
  for (const ShareView& share : shares) {
    all.shares += share.shares;
    all.used += share.gpu_seconds;
  }
  // A user sees only his own and the groups', and is told the sum of all; an older scheduler is not
  // so kind.
  if (!shares.empty() && shares.front().all_shares > 0)
    all = {.shares = shares.front().all_shares, .used = shares.front().all_gpu_seconds};
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const ShareView& share) {
    auto& row = rows.emplace_back();
    for (const SheetColumn& column : columns)
      row.push_back(share_value(share, share_fields()[column.field].name, all, cluster.name));
  };
  if (!parsed.has("Users") && !parsed.has("users") && !parsed.has("accounts"))
    add({.kind = "", .name = "root"});
  for (const ShareView& share : shares) {
    const bool is_user = share.kind == "user";
    if (parsed.has("Users") && !is_user) continue;
    if (is_user && !is_all && share.name != me) continue;
    if (parsed.has("users") && (!is_user || !is_listed(parsed.value("users"), share.name)))
      continue;
    if (!is_listed(parsed.value("accounts"), share.name)) continue;
    add(share);
  }
  return sheet(columns, rows,
               {.is_parsable = parsed.has("parsable") || parsed.has("parsable2"),
                .has_last_delimiter = parsed.has("parsable"),
                .delimiter = parsed.has("delimiter") ? parsed.value("delimiter") : "|",
                .has_head = !parsed.has("noheader") && !parsed.has("")});
}

template <class Page>
int answer(Console& console, Page page) {
  auto found = patient_scheduler("", console);
  if (!found) return console.complain(kMisuse, found.error());
  const Result<std::string> text = page(*found);
  if (!text) return console.complain(kFailure, text.error());
  console.put(*text);
  return console.done();
}

}  // namespace

int run_sprio(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kPriorityOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kPriorityPage, kPriorityOptions, console))
    return *code;
  return answer(console, [&](Scheduler& scheduler) { return priorities(scheduler, parsed); });
}

int run_sshare(std::span<const std::string> words, Console& console) {
  const Parsed parsed = parse_options(kShareOptions, words, OperandOrder::Mixed);
  if (const auto code = usual_answer(parsed, kSharePage, kShareOptions, console)) return *code;
  if (parsed.has("helpformat")) return console.put(field_names(share_fields())), console.done();
  return answer(console, [&](Scheduler& scheduler) { return share_page(scheduler, parsed); });
}

}  // namespace berth::client
