/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Between Berth and a Slurm: compiled against the site's own libslurm, one request per line on
 * stdin, rows and an end line on stdout (README.md has the protocol, LICENSE the licence).
 *
 * Only calls are used that take a job as text: those that take a number have other arguments since
 * 26.05. No request can end the program; the end of stdin does, and so does libslurm itself where
 * it does not understand its slurm.conf.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

enum { PROTOCOL = 1, MOST_FIELDS = 16 };

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 11, 0)
#define JOB_ID(job) ((job)->step_id.job_id)
#else
#define JOB_ID(job) ((job)->job_id)
#endif

/* In libslurm under one of these names, in no header of it. */
extern const char* slurm_job_reason_string(unsigned reason) __attribute__((weak));
extern const char* slurm_job_state_reason_string(unsigned reason) __attribute__((weak));
extern void slurm_xfree(void** item) __attribute__((weak));

/* --- what is said */

static void put_text(const char* text) {
  putchar_unlocked('\t');
  for (; text && *text; ++text) {
    switch (*text) {
      case '\t': fputs_unlocked("\\t", stdout); break;
      case '\n': fputs_unlocked("\\n", stdout); break;
      case '\r': fputs_unlocked("\\r", stdout); break;
      case '\\': fputs_unlocked("\\\\", stdout); break;
      default: putchar_unlocked(*text);
    }
  }
}

static void put_digits(uint64_t number) {
  char digits[20];
  int length = 0;
  do {
    digits[length++] = (char)('0' + number % 10);
    number /= 10;
  } while (number);
  while (length) putchar_unlocked(digits[--length]);
}

static void put_64(uint64_t number) {
  putchar_unlocked('\t');
  if (number < NO_VAL64) put_digits(number);
}
static void put_32(uint32_t number) {
  putchar_unlocked('\t');
  if (number < NO_VAL) put_digits(number);
}
static void put_16(uint16_t number) {
  putchar_unlocked('\t');
  if (number < NO_VAL16) put_digits(number);
}
static void put_time(time_t moment) {
  put_64(moment > 0 && (uint64_t)moment < NO_VAL ? (uint64_t)moment : 0);
}

/* --- what is asked */

struct request {
  int count; /* of fields, the number and the verb among them */
  char* fields[MOST_FIELDS];
};

static void decode(char* text) {
  char* to = text;
  for (; *text; ++text, ++to) {
    *to = *text;
    if (*text != '\\' || !text[1]) continue;
    ++text;
    *to = *text == 't' ? '\t' : *text == 'n' ? '\n' : *text == 'r' ? '\r' : *text;
  }
  *to = '\0';
}

static bool parse(char* line, struct request* request) {
  request->count = 0;
  for (char* field; (field = strsep(&line, "\t"));) {
    if (request->count == MOST_FIELDS) return false;
    decode(field);
    request->fields[request->count++] = field;
  }
  return request->count >= 2;
}

static bool to_number(const char* text, uint64_t most, uint64_t* number) {
  char* end = NULL;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *number = strtoull(text, &end, 10);
  return !errno && !*end && *number <= most;
}

/* --- reading */

/* The name of a user, remembered: a name service may be slow, and a queue has few users. */
static const char* user_name(uint32_t uid) {
  enum { SLOTS = 256 };
  static struct {
    bool known;
    uint32_t uid;
    char name[64];
  } slots[SLOTS];
  const uint32_t at = uid % SLOTS;
  if (!slots[at].known || slots[at].uid != uid) {
    const struct passwd* const entry = getpwuid(uid);
    slots[at].known = true;
    slots[at].uid = uid;
    if (entry) {
      snprintf(slots[at].name, sizeof slots[at].name, "%s", entry->pw_name);
    } else {
      snprintf(slots[at].name, sizeof slots[at].name, "%" PRIu32, uid);
    }
  }
  return slots[at].name;
}

static const char* reason_word(uint32_t reason) {
  if (slurm_job_state_reason_string) return slurm_job_state_reason_string(reason);
  if (slurm_job_reason_string) return slurm_job_reason_string(reason);
  return "";
}

static bool is_alone(const slurm_job_info_t* job) {
#ifdef JOB_EXCLUSIVE_NODE
  return job->exclusive == JOB_EXCLUSIVE_NODE;
#else
  return job->shared == JOB_SHARED_NONE;
#endif
}

static void put_array(const slurm_job_info_t* job) {
  const bool is_task = job->array_task_id < NO_VAL;
  const bool is_array = is_task || (job->array_task_str && *job->array_task_str);
  put_32(is_array ? job->array_job_id : 0);
  if (is_task || !is_array) {
    put_32(is_task ? job->array_task_id : NO_VAL);
  } else {
    put_text(job->array_task_str);
  }
}

static void put_job(const slurm_job_info_t* job) {
  fputs_unlocked("job", stdout);
  put_32(JOB_ID(job));
  put_16(job->restart_cnt);
  put_time(job->submit_time);
  put_array(job);
  put_32(job->user_id);
  put_text(job->user_name && *job->user_name ? job->user_name : user_name(job->user_id));
  put_text(job->account);
  put_text(job->partition);
  put_text(job->qos);
  put_text(job->name);
  put_32(job->job_state);
  put_text(reason_word(job->state_reason));
  put_text(job->state_desc);
  put_32(job->priority);
  put_16(job->batch_flag);
  put_16(job->requeue);
  put_time(job->eligible_time);
  put_time(job->start_time);
  put_time(job->end_time);
  put_32(job->time_limit);
  put_32(job->num_nodes);
  put_32(job->max_nodes);
  put_32(job->num_tasks);
  put_32(job->num_cpus);
  put_text(job->tres_per_job);
  put_text(job->tres_per_node);
  put_text(job->tres_per_task);
  put_text(job->tres_per_socket);
  put_text(job->tres_req_str);
  put_text(job->tres_alloc_str);
  put_text(job->nodes);
  put_text(job->req_nodes);
  put_text(job->exc_nodes);
  put_text(job->features);
  put_text(job->dependency);
  put_text(job->resv_name);
  put_16(is_alone(job));
  put_text(job->comment);
  put_text(job->admin_comment);
  put_32(job->exit_code);
  for (uint32_t i = 0; i < job->gres_detail_cnt; ++i) put_text(job->gres_detail_str[i]);
  putchar_unlocked('\n');
}

static void put_moment(time_t moment) {
  fputs_unlocked("at", stdout);
  put_time(moment);
  putchar_unlocked('\n');
}

/* What a call of libslurm left behind, where it told that it failed. */
static int last_error(void) { return errno ? errno : SLURM_ERROR; }

static int say_if_same(int code) {
  if (code != SLURM_NO_CHANGE_IN_DATA) return code;
  fputs_unlocked("same\n", stdout);
  return 0;
}

static int tell_jobs(time_t since) {
  job_info_msg_t* answer = NULL;
  if (slurm_load_jobs(since, &answer, SHOW_ALL | SHOW_DETAIL)) return say_if_same(last_error());
  put_moment(answer->last_update);
  for (uint32_t i = 0; i < answer->record_count; ++i) put_job(&answer->job_array[i]);
  slurm_free_job_info_msg(answer);
  return 0;
}

static void put_state(uint32_t state) {
  static const char* const bases[] = {"UNKNOWN", "DOWN",  "IDLE",  "ALLOCATED",
                                      "ERROR",   "MIXED", "FUTURE"};
  static const struct {
    uint32_t bit;
    const char* word;
  } flags[] = {
      {NODE_STATE_DRAIN, "DRAIN"},
      {NODE_STATE_NO_RESPOND, "NOT_RESPONDING"},
      {NODE_STATE_COMPLETING, "COMPLETING"},
      {NODE_STATE_FAIL, "FAIL"},
      {NODE_STATE_MAINT, "MAINT"},
      {NODE_STATE_RES, "RESERVED"},
      {NODE_STATE_PLANNED, "PLANNED"},
      {NODE_STATE_INVALID_REG, "INVALID_REG"},
      {NODE_STATE_REBOOT_REQUESTED, "REBOOT_REQUESTED"},
      {NODE_STATE_REBOOT_ISSUED, "REBOOT_ISSUED"},
      {NODE_STATE_POWERED_DOWN, "POWERED_DOWN"},
      {NODE_STATE_POWERING_DOWN, "POWERING_DOWN"},
      {NODE_STATE_POWERING_UP, "POWERING_UP"},
      {NODE_STATE_POWER_DOWN, "POWER_DOWN"},
      {NODE_STATE_CLOUD, "CLOUD"},
#ifdef NODE_STATE_BLOCKED
      {NODE_STATE_BLOCKED, "BLOCKED"},
#endif
  };
  const uint32_t base = state & NODE_STATE_BASE;
  putchar_unlocked('\t');
  fputs_unlocked(base < sizeof bases / sizeof *bases ? bases[base] : "UNKNOWN", stdout);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i)
    if (state & flags[i].bit) {
      putchar_unlocked('+');
      fputs_unlocked(flags[i].word, stdout);
    }
}

/* What jobs hold of a node: in its record since 25.05, before in the data of the select plug-in. */
struct held {
  uint16_t cpus;
  uint64_t memory;
  char* tres;
};

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(25, 5, 0)
static struct held held_of(const node_info_t* node) {
  const struct held held = {node->alloc_cpus, node->alloc_memory, node->alloc_tres_fmt_str};
  return held;
}
static void drop_held(struct held* held) { (void)held; }
#else
static struct held held_of(const node_info_t* node) {
  struct held held = {0, 0, NULL};
  slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_SUBCNT, NODE_STATE_ALLOCATED,
                            &held.cpus);
  slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC, NODE_STATE_ALLOCATED,
                            &held.memory);
  slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_TRES_ALLOC_FMT_STR,
                            NODE_STATE_ALLOCATED, &held.tres);
  return held;
}
static void drop_held(struct held* held) {
  if (slurm_xfree) slurm_xfree((void**)&held->tres);
}
#endif

static void put_node(const node_info_t* node) {
  struct held held = held_of(node);
  fputs_unlocked("node", stdout);
  put_text(node->name);
  put_state(node->node_state);
  put_text(node->reason);
  put_text(node->features_act ? node->features_act : node->features);
  put_16(node->cpus_efctv);
  put_16(held.cpus);
  put_16(node->sockets);
  put_64(node->real_memory);
  put_64(node->mem_spec_limit);
  put_64(held.memory);
  put_text(node->gres);
  put_text(node->gres_used);
  put_text(held.tres);
  putchar_unlocked('\n');
  drop_held(&held);
}

static int tell_nodes(time_t since) {
  node_info_msg_t* answer = NULL;
  if (slurm_load_node(since, &answer, SHOW_ALL | SHOW_DETAIL | SHOW_MIXED))
    return say_if_same(last_error());
  put_moment(answer->last_update);
  for (uint32_t i = 0; i < answer->record_count; ++i)
    if (answer->node_array[i].name) put_node(&answer->node_array[i]); /* some have been removed */
  slurm_free_node_info_msg(answer);
  return 0;
}

static int tell_partitions(void) {
  partition_info_msg_t* answer = NULL;
  if (slurm_load_partitions(0, &answer, SHOW_ALL)) return last_error();
  for (uint32_t i = 0; i < answer->record_count; ++i) {
    fputs_unlocked("partition", stdout);
    put_text(answer->partition_array[i].name);
    put_text(answer->partition_array[i].nodes);
    putchar_unlocked('\n');
  }
  slurm_free_partition_info_msg(answer);
  return 0;
}

/* --- commanding */

/* A call may succeed as a whole and have failed for the task that was meant. */
static int settle(int result, job_array_resp_msg_t* answer) {
  int code = result ? last_error() : 0;
  for (uint32_t i = 0; answer && i < answer->job_array_count; ++i)
    if (answer->error_code[i]) code = (int)answer->error_code[i];
  if (answer) slurm_free_job_array_resp(answer);
  return code;
}

static int update(job_desc_msg_t* change, char* job) {
  job_array_resp_msg_t* answer = NULL;
  change->job_id_str = job;
  const int result = slurm_update_job2(change, &answer);
  return settle(result, answer);
}

static int place(const struct request* request) {
  uint64_t count, tasks, cpus, now;
  char* const* const fields = request->fields;
  if (!to_number(fields[4], 1000000, &count) || !count ||
      !to_number(fields[5], INT32_MAX, &tasks) || !to_number(fields[6], INT32_MAX, &cpus) ||
      !to_number(fields[7], 1, &now) || !*fields[3])
    return EINVAL;
  job_desc_msg_t change;
  slurm_init_job_desc_msg(&change);
  change.req_nodes = fields[3];
  /* Equal, or 22.05 adds nodes up to the most that the job may have. */
  change.min_nodes = change.max_nodes = (uint32_t)count;
  if (tasks) change.num_tasks = (uint32_t)tasks;
  if (cpus) change.min_cpus = (uint32_t)cpus;
  if (now) change.begin_time = time(NULL);
  if (*fields[8]) change.qos = fields[8];
  change.priority = INFINITE; /* which releases it */
  return update(&change, fields[2]);
}

static int set_priority(char* job, uint32_t priority) {
  job_desc_msg_t change;
  slurm_init_job_desc_msg(&change);
  change.priority = priority;
  return update(&change, job);
}

static int set_time_limit(char* job, const char* minutes) {
  uint64_t number;
  if (!to_number(minutes, NO_VAL - 1, &number)) return EINVAL;
  job_desc_msg_t change;
  slurm_init_job_desc_msg(&change);
  change.time_limit = number ? (uint32_t)number : INFINITE;
  return update(&change, job);
}

static int set_admin_comment(char* job, char* text) {
  job_desc_msg_t change;
  slurm_init_job_desc_msg(&change);
  change.admin_comment = text;
  return update(&change, job);
}

static int requeue_held(char* job) {
  job_array_resp_msg_t* answer = NULL;
  const int result = slurm_requeue2(job, JOB_REQUEUE_HOLD, &answer);
  return settle(result, answer);
}

static int suspend(char* job) {
  job_array_resp_msg_t* answer = NULL;
  const int result = slurm_suspend2(job, &answer);
  return settle(result, answer);
}

static int resume(char* job) {
  job_array_resp_msg_t* answer = NULL;
  const int result = slurm_resume2(job, &answer);
  return settle(result, answer);
}

static int send_signal(const char* job, uint64_t number, uint16_t flags) {
  return slurm_kill_job2(job, (uint16_t)number, flags, NULL) ? last_error() : 0;
}

static int resume_node(char* node) {
  update_node_msg_t change;
  slurm_init_update_node_msg(&change);
  change.node_names = node;
  change.node_state = NODE_RESUME;
  return slurm_update_node(&change) ? last_error() : 0;
}

/* --- the requests */

static int hello(const char* protocol) {
  const long running = slurm_api_version();
  uint64_t asked;
  printf("link\t%d\t%ld\t%ld.%02ld.%ld\n", PROTOCOL, (long)SLURM_VERSION_MAJOR(running),
         (long)SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
         (long)SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
         (long)SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
  if (!to_number(protocol, INT32_MAX, &asked) || asked != PROTOCOL) return EPROTONOSUPPORT;
  return 0;
}

static int tell(const struct request* request) {
  const char* const verb = request->fields[1];
  uint64_t since;
  if (request->count != 3 || !to_number(request->fields[2], INT64_MAX, &since)) return EINVAL;
  return strcmp(verb, "jobs") ? tell_nodes((time_t)since) : tell_jobs((time_t)since);
}

static int command(const struct request* request) {
  const char* const verb = request->fields[1];
  char* const subject = request->fields[2];
  uint64_t number;
  if (!*subject) return EINVAL;
  if (request->count == 3) {
    if (!strcmp(verb, "hold")) return set_priority(subject, 0);
    if (!strcmp(verb, "release")) return set_priority(subject, INFINITE);
    if (!strcmp(verb, "requeue_held")) return requeue_held(subject);
    if (!strcmp(verb, "cancel")) return send_signal(subject, SIGKILL, 0);
    if (!strcmp(verb, "suspend")) return suspend(subject);
    if (!strcmp(verb, "resume")) return resume(subject);
    if (!strcmp(verb, "resume_node")) return resume_node(subject);
  }
  if (request->count == 4) {
    const bool is_signal = to_number(request->fields[3], 64, &number);
    if (!strcmp(verb, "time_limit")) return set_time_limit(subject, request->fields[3]);
    if (!strcmp(verb, "admin_comment")) return set_admin_comment(subject, request->fields[3]);
    if (!strcmp(verb, "signal") && is_signal) return send_signal(subject, number, KILL_FULL_JOB);
    if (!strcmp(verb, "signal_script") && is_signal)
      return send_signal(subject, number, KILL_JOB_BATCH);
  }
  if (request->count == 9 && !strcmp(verb, "place")) return place(request);
  return EINVAL;
}

static int answer(const struct request* request) {
  const char* const verb = request->fields[1];
  errno = 0;
  if (!strcmp(verb, "hello") && request->count == 3) return hello(request->fields[2]);
  if (!strcmp(verb, "jobs") || !strcmp(verb, "nodes")) return tell(request);
  if (!strcmp(verb, "partitions") && request->count == 2) return tell_partitions();
  return request->count >= 3 ? command(request) : EINVAL;
}

static void put_end(const char* number, int code) {
  putchar_unlocked('.');
  put_text(number);
  printf("\t%d", code);
  put_text(code ? slurm_strerror(code) : "ok");
  putchar_unlocked('\n');
}

int main(void) {
  char* line = NULL;
  size_t room = 0;
  ssize_t length;
  setvbuf(stdout, NULL, _IOFBF, 1 << 20);
  setenv("SLURM_BITSTR_LEN", "0", 1); /* or long lists of array tasks are cut off */
  slurm_init(NULL);
  while ((length = getline(&line, &room, stdin)) > 0) {
    struct request request;
    if (line[length - 1] == '\n') line[length - 1] = '\0';
    const bool is_good = strlen(line) + 1 >= (size_t)length && parse(line, &request);
    put_end(is_good ? request.fields[0] : "", is_good ? answer(&request) : EINVAL);
    if (fflush(stdout)) return 1; /* nobody listens any more */
  }
  free(line);
  return 0;
}
