-- The health of every kind of kafkarebalance.dev. A rebalance that waits for a person or for a time is Suspended: it is
-- neither broken nor about to end. What the operator waits for by itself (other rebalances, brokers) is Progressing.
local waiting = { AwaitingApproval = true, Frozen = true, OutsideWindow = true, Suspended = true }

local status = obj.status or {}
if status.conditions == nil or status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "The operator has not processed this generation yet" }
end

local found = {}
for _, condition in ipairs(status.conditions) do
  found[condition.type] = condition
end
local ready = found.Ready
if ready == nil then
  return { status = "Progressing", message = "There is no condition Ready yet" }
end

local health = { message = ready.reason }
if ready.message ~= nil and ready.message ~= "" then
  health.message = ready.reason .. ": " .. ready.message
end
if ready.status == "True" then
  health.status = "Healthy"
elseif found.Stalled ~= nil and found.Stalled.status == "True" then
  health.status = "Degraded"
elseif waiting[ready.reason] then
  health.status = "Suspended"
else
  health.status = "Progressing"
end
return health
