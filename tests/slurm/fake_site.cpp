#include "slurm/fake_site.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json_writer.h"
#include "base/split.h"
#include "slurm/setup_conf.h"
#include "slurm/setup_files.h"

namespace berth::test {

namespace fs = std::filesystem;
using slurm::Said;

FakeSite::FakeSite(const std::string& conf_text) {
  write("slurm.conf", conf_text);
  write("job_submit_lua.so", "");
  BERTH_CHECK(reconfigure().exit == 0, "the site begins with settings that work");
}

void FakeSite::write(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
}

std::optional<std::string> FakeSite::read(const std::string& name) const {
  return slurm::read_any(path(name)).value_or(std::nullopt);
}

std::map<std::string, std::string> FakeSite::everything() const {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(dir_.path())) {
    const std::string name = entry.path().filename().string();
    files[name] = fmt::format("{:o} {}", static_cast<unsigned>(entry.status().permissions()),
                              read(name).value_or("?"));
  }
  return files;
}

std::string FakeSite::qos_table() const {
  std::string table;
  for (const auto& [name, jobs_allowed] : qos) table += name + "|" + jobs_allowed + " ";
  return table;
}

slurm::SetupWishes FakeSite::wishes() const {
  slurm::SetupWishes wishes;
  wishes.conf = conf();
  wishes.lua.heartbeat = path("heartbeat");
  return wishes;
}

FakeJob* FakeSite::job(std::uint32_t id) {
  const auto found = std::ranges::find(jobs, id, &FakeJob::id);
  return found == jobs.end() ? nullptr : &*found;
}

Result<Said> FakeSite::run(const std::vector<std::string>& words) {
  log.push_back(fmt::format("{}", fmt::join(words, " ")));
  if (fails_at > 0 && --fails_at == 0) return Said{1, "", "made to fail"};
  return answer(words);
}

Said FakeSite::answer(const std::vector<std::string>& words) {
  if (words[0] == "scontrol" && words[1] == "--version") return {0, "slurm-wlm 24.11.5\n", ""};
  if (words[0] == "sacctmgr") return sacctmgr(words);
  if (is_down) return {1, "", "Unable to contact slurm controller (connect failure)"};
  if (words[0] == "scontrol") return scontrol(words);
  if (words[0] == "sbatch") return submit();
  if (words[0] == "squeue" && words[1] == "--json") return {0, queue(), ""};
  if (words[0] == "squeue") return {};
  std::erase_if(jobs, [](const FakeJob& job) { return job.name == slurm::kProbeName; });
  return {};  // scancel
}

Said FakeSite::reconfigure() {
  const slurm::ConfReader reader = [](const std::string& name) { return slurm::read_any(name); };
  const auto values = slurm::read_conf(conf(), reader);
  if (!values || !values->missing.empty()) return {1, "", "Unspecified error"};
  const std::string plugins = values->value("JobSubmitPlugins").value_or("");
  if (slurm::has_item(plugins, "lua") && !read("job_submit.lua"))
    return {1, "", "Unspecified error"};
  live_plugins = plugins;
  live_parameters = values->value("SchedulerParameters").value_or("");
  return {};
}

Said FakeSite::scontrol(const std::vector<std::string>& words) {
  const auto or_null = [](const std::string& text) { return text.empty() ? "(null)" : text; };
  if (words[1] == "show")
    return {0,
            fmt::format("Configuration data as of now\nAccountingStorageEnforce = {}\n"
                        "AccountingStorageType   = accounting_storage/slurmdbd\n"
                        "JobSubmitPlugins        = {}\nPluginDir               = {}\n"
                        "SchedulerParameters     = {}\nSlurmUser               = me({})\n"
                        "SLURM_CONF              = {}\n",
                        enforce, or_null(live_plugins), dir_.path(), or_null(live_parameters),
                        ::geteuid(), conf()),
            ""};
  if (words[1] == "reconfigure") return reconfigure();
  const bool releases = words[1] == "release";
  const std::string refs = releases ? words[2] : words[2].substr(words[2].find('=') + 1);
  Said said;
  const std::string ids = refs.substr(0, refs.find('_'));
  for (const std::string_view ref : split(ids, ',')) {
    FakeJob* found = job(static_cast<std::uint32_t>(std::stoul(std::string(ref))));
    if (found == nullptr || ref == refused_id) {
      said = {1, "", fmt::format("Invalid job id specified for job {}", ref)};
      continue;
    }
    if (releases) found->priority = 77;
    for (std::size_t i = 3; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      const std::string key = words[i].substr(0, equals), value = words[i].substr(equals + 1);
      if (key == "reqnodelist") found->required_nodes = value;
      if (key == "starttime")
        found->eligible = value.starts_with("uts") ? std::stol(value.substr(3)) : 1;
      if (key == "admincomment") found->admin_comment = value;
    }
  }
  return said;
}

Said FakeSite::submit() {
  FakeJob probe{.id = next_id_++, .name = slurm::kProbeName};
  const std::string script = read("job_submit.lua").value_or("");
  const std::string begin = "local PROBE_MARK = \"";
  const std::size_t at = script.find(begin);
  if (at != std::string::npos && slurm::has_item(live_plugins, "lua") && !ignores_script) {
    const std::size_t from = at + begin.size();
    probe.admin_comment = script.substr(from, script.find('"', from) - from);
  }
  jobs.push_back(probe);
  return {0, fmt::format("{}\n", probe.id), ""};
}

Said FakeSite::sacctmgr(const std::vector<std::string>& words) {
  if (words[1] == "-n") {
    std::string table;
    for (const auto& [name, jobs_allowed] : qos) table += name + "|" + jobs_allowed + "\n";
    return {0, table, ""};
  }
  if (words[2] == "add") {
    qos[words[4]] = "";
  } else if (words[2] == "delete") {
    qos.erase(words[4]);
  } else {
    const std::string name = words[5].substr(5), value = words[7].substr(8);
    qos[name] = value == "-1" ? "" : value;
  }
  return {};
}

std::string FakeSite::queue() const {
  JsonWriter json;
  json.begin_object().key("jobs").begin_array();
  for (const FakeJob& job : jobs) {
    json.begin_object().field("job_id", job.id).field("name", job.name);
    json.key("job_state").begin_array().value("PENDING").end_array();
    json.field("admin_comment", job.admin_comment).field("required_nodes", job.required_nodes);
    json.field("state_reason", job.reason).field("user_name", "ann").field("qos", job.qos);
    json.field("array_job_id", job.tasks.empty() ? 0U : job.id);
    json.field("array_task_string", job.tasks);
    json.key("priority").begin_object().field("set", true).field("number", job.priority);
    json.end_object().key("eligible_time").begin_object().field("set", true);
    json.field("number", job.eligible).end_object().end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace berth::test
