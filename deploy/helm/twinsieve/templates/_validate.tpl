{{/* What values.schema.json cannot say: how values fit each other. Each message says what to do. */}}
{{- define "twinsieve.validate" -}}
{{- if not .Values.kafka.bootstrap -}}
{{- fail "kafka.bootstrap is empty: set it to the brokers to connect to first, such as kafka-1:9092,kafka-2:9092." -}}
{{- end -}}
{{- $slots := int .Values.topics.slots -}}
{{- $count := int .Values.shards.count -}}
{{- if mod $slots $count -}}
{{- $divisors := list -}}
{{- range $number := untilStep 1 (int (add1 $slots)) 1 -}}
{{- if not (mod $slots $number) -}}{{- $divisors = append $divisors $number -}}{{- end -}}
{{- end -}}
{{- fail (printf "shards.count is %d and does not divide topics.slots, %d: set shards.count to one of %s." $count $slots (join ", " $divisors)) -}}
{{- end -}}
{{- $name := printf "%s-shard-1" (include "twinsieve.fullname" .) -}}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name -}}
{{- $there := dig "matchLabels" "twinsieve/shards" "another number of" .spec.selector -}}
{{- if ne $there (toString $count) -}}
{{- fail (printf "shards.count is %d, and the release has %s shards: their folders and the resolver's are of so many. Leave shards.count as it is, or make folders of another number first: see On Kubernetes in docs/shards.md." $count $there) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.topics.create (gt (int .Values.fingerprint.replicas) (int .Values.topics.partitions)) -}}
{{- fail (printf "fingerprint.replicas is %d, more than topics.partitions, %d: a process without a partition is never ready. Lower fingerprint.replicas; or add partitions to the topic pages and set topics.partitions to their number." (int .Values.fingerprint.replicas) (int .Values.topics.partitions)) -}}
{{- end -}}
{{- end -}}
