#include "slurm/setup_lua.h"

#include <fmt/format.h>

#include "base/digest.h"
#include "slurm/mark.h"

namespace berth::slurm {

namespace {

constexpr const char* kHead =
    R"lua(-- Written by `berth slurm setup`; `berth slurm setup --undo` removes it. To change a setting, run setup again:
-- a file that was edited by hand is left where it is by undo.
--
-- Batch jobs enter the queue held and marked in their admin comment; Berth says where and when they start. Users can
-- hold their jobs, and lift their own hold. Without a sign of life of Berth everything is as without this script.
)lua";

// What follows the settings. It runs inside slurmctld and under its locks: no process is started,
// nothing waits, and every step of ours is guarded.
constexpr const char* kBody = R"lua(
local NO_VAL = 4294967294
local ACCESS_DENIED = 2002  -- ESLURM_ACCESS_DENIED

local function read_all(path)
  local file = io.open(path, "rb")
  if file == nil then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

-- The site's own script. Slurm watches only this file, so a change of the site's is looked for at each call. As with
-- Slurm, one that cannot be read leaves the old one in force.
local site = {}
local own = {}

local function take_site(text)
  local chunk, complaint = (loadstring or load)(text, "@" .. SITE)
  if chunk == nil then return complaint end
  slurm_job_submit, slurm_job_modify = nil, nil
  local fine, trouble = pcall(chunk)
  if fine then site.submit, site.modify = slurm_job_submit, slurm_job_modify end
  slurm_job_submit, slurm_job_modify = own.submit, own.modify
  if not fine then return trouble end
end

local function look_at_site()
  if SITE == nil then return end
  local text = read_all(SITE)
  if text == nil or text == site.text then return end
  site.text = text
  local complaint = take_site(text)
  if complaint ~= nil then slurm.log_error("berth: %s stays as it was: %s", SITE, tostring(complaint)) end
end

local function refuses(answer) return type(answer) == "number" and answer ~= slurm.SUCCESS end

-- Berth writes the time into its heartbeat. One from the future is one from before the clock was set.
local function is_berth_there()
  if HEARTBEAT == nil then return true end
  local file = io.open(HEARTBEAT, "r")
  if file == nil then return false end
  local at = tonumber((file:read("*l")))
  file:close()
  return at ~= nil and math.abs(os.time() - at) <= PATIENCE
end

local function all_in(list, set)
  local any = false
  for name in string.gmatch(list, "[^,]+") do
    if not set[name] then return false end
    any = true
  end
  return any
end

local function default_partition(part_list)
  for _, part in pairs(part_list or {}) do
    if part.flag_default == 1 then return part.name end
  end
end

local function is_free(job_desc, part_list)
  if FREE_USERS[job_desc.user_id] then return true end
  local partition = job_desc.partition or default_partition(part_list)
  if partition ~= nil and all_in(partition, FREE_PARTITIONS) then return true end
  local qos = job_desc.qos or job_desc.default_qos
  return qos ~= nil and FREE_QOS[qos] == true
end

local function is_given(number) return number ~= nil and number < NO_VAL end

-- What the user asked for, so that it can be had back when Berth has placed the job and is gone.
local function mark_of(job_desc)
  local mark = "berth=held"
  if job_desc.req_nodes ~= nil and job_desc.req_nodes ~= "" then mark = mark .. ";nodes=" .. job_desc.req_nodes end
  if is_given(job_desc.min_nodes) then
    local most = is_given(job_desc.max_nodes) and job_desc.max_nodes or job_desc.min_nodes
    mark = mark .. string.format(";n=%d-%d", job_desc.min_nodes, most)
  end
  local begin = job_desc.begin_time
  if begin ~= nil and begin > 0 and begin < USER_HOLD then mark = mark .. string.format(";begin=%d", begin) end
  return mark
end

local function add_mark(job_desc, mark)
  local comment = job_desc.admin_comment
  job_desc.admin_comment = (comment ~= nil and comment ~= "") and comment .. " " .. mark or mark
end

local function hold(job_desc, part_list, was_held, is_held)
  if job_desc.script == nil then return end
  if job_desc.name == PROBE then return add_mark(job_desc, PROBE_MARK) end
  -- The site's script holds it for reasons of its own: that is not ours to lift.
  if is_held and not was_held then return end
  if is_free(job_desc, part_list) or not is_berth_there() then return end
  add_mark(job_desc, mark_of(job_desc))
  if was_held then job_desc.begin_time = USER_HOLD end
  job_desc.priority = 0
end

local function wanted_begin(admin_comment)
  local begin = tonumber(string.match(admin_comment, "berth=held[^ ]*;begin=(%d+)"))
  local now = os.time()
  return (begin ~= nil and begin > now) and begin or now
end

local function is_marked(admin_comment)
  local padded = " " .. (admin_comment or "") .. " "
  return string.find(padded, " berth=held[ ;]") ~= nil
end

-- What a user may do with a job that waits for Berth.
local function judge(job_desc, job_rec, uid)
  if PRIVILEGED[uid] or not is_marked(job_rec.admin_comment) then return slurm.SUCCESS end
  if job_rec.job_state % 256 ~= 0 then return slurm.SUCCESS end  -- it does not wait
  local sets = job_desc.priority ~= nil and job_desc.priority ~= NO_VAL
  if sets and job_desc.priority == 0 then
    job_desc.begin_time = USER_HOLD
  elseif sets and job_rec.priority == 0 then
    job_desc.begin_time = wanted_begin(job_rec.admin_comment)
    if is_berth_there() then job_desc.priority = 0 end  -- only the user's own hold is lifted
  elseif job_desc.nice ~= nil and job_desc.nice ~= NO_VAL and job_rec.priority == 0 and is_berth_there() then
    slurm.log_user("job %d waits for Berth, which decides its turn: its nice value cannot be changed", job_rec.job_id)
    return ACCESS_DENIED  -- it would release the job
  end
  return slurm.SUCCESS
end

function own.submit(job_desc, part_list, submit_uid)
  local was_held = job_desc.priority == 0
  local looked, complaint = pcall(look_at_site)
  if not looked then slurm.log_error("berth: %s", tostring(complaint)) end
  if site.submit ~= nil then
    local answer = site.submit(job_desc, part_list, submit_uid)
    if refuses(answer) then return answer end
  end
  local fine, trouble = pcall(hold, job_desc, part_list, was_held, job_desc.priority == 0)
  if not fine then slurm.log_error("berth: a job is not held: %s", tostring(trouble)) end
  return slurm.SUCCESS
end

function own.modify(job_desc, job_rec, part_list, submit_uid)
  pcall(look_at_site)
  if site.modify ~= nil then
    local answer = site.modify(job_desc, job_rec, part_list, submit_uid)
    if refuses(answer) then return answer end
  end
  local fine, answer = pcall(judge, job_desc, job_rec, submit_uid)
  if fine then return answer end
  slurm.log_error("berth: a change is left to Slurm: %s", tostring(answer))
  return slurm.SUCCESS
end

-- A site's script that does not load when slurmctld starts is what it would be without us: an error.
if SITE ~= nil then
  site.text = read_all(SITE)
  if site.text == nil then error(SITE .. " cannot be read") end
  local complaint = take_site(site.text)
  if complaint ~= nil then error(complaint, 0) end
end

slurm_job_submit, slurm_job_modify = own.submit, own.modify
return slurm.SUCCESS
)lua";

std::string path_or_nil(const std::string& path) { return path.empty() ? "nil" : lua_quoted(path); }

std::string number_set(const std::vector<std::uint32_t>& numbers) {
  std::string set = "{";
  for (const std::uint32_t number : numbers)
    set += fmt::format("{}[{}] = true", set.size() > 1 ? ", " : "", number);
  return set + "}";
}

std::string name_set(const std::vector<std::string>& names) {
  std::string set = "{";
  for (const std::string& name : names)
    set += fmt::format("{}[{}] = true", set.size() > 1 ? ", " : "", lua_quoted(name));
  return set + "}";
}

std::string lua_settings(const LuaGate& gate) {
  std::string text;
  const auto say = [&](std::string_view name, const std::string& value) {
    text += fmt::format("local {} = {}\n", name, value);
  };
  say("SITE", path_or_nil(gate.site_script));
  say("HEARTBEAT", path_or_nil(gate.heartbeat));
  say("PATIENCE", fmt::format("{}", gate.patience_seconds));
  say("PRIVILEGED", number_set(gate.privileged_uids));
  say("FREE_PARTITIONS", name_set(gate.free_partitions));
  say("FREE_USERS", number_set(gate.free_uids));
  say("FREE_QOS", name_set(gate.free_qos));
  say("USER_HOLD", fmt::format("{}", kUserHold));
  say("PROBE", lua_quoted(kProbeName));
  return text;
}

}  // namespace

std::string lua_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      quoted += fmt::format("\\{:03}", byte);  // three digits: the next one is no part of it
    else
      quoted += c;
  }
  return quoted + "\"";
}

std::string probe_mark(const LuaGate& gate) {
  Digest digest;
  digest.add(lua_settings(gate));
  digest.add(kBody);
  return "berth=probe;" + digest.hex();
}

std::string lua_script(const LuaGate& gate) {
  return std::string(kHead) + lua_settings(gate) +
         fmt::format("local PROBE_MARK = {}\n", lua_quoted(probe_mark(gate))) + kBody;
}

}  // namespace berth::slurm
