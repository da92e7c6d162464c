{{/* Name of everything that belongs to the release. */}}
{{- define "twinsieve.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels that select all pods of the release. */}}
{{- define "twinsieve.releaseSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/*
Labels that select the pods of one group. Takes: root, component. Kubernetes lets no selector of a StatefulSet change, so
that of shards and resolvers says how many shards there are: their folders have the parts of so many.
*/}}
{{- define "twinsieve.selector" -}}
{{ include "twinsieve.releaseSelector" .root }}
app.kubernetes.io/component: {{ .component }}
{{- if or (eq .component "resolver") (hasPrefix "shard-" .component) }}
twinsieve/shards: {{ int .root.Values.shards.count | quote }}
{{- end }}
{{- end -}}

{{/* Labels of an object. Takes: root, component. */}}
{{- define "twinsieve.labels" -}}
{{ include "twinsieve.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "twinsieve.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{/* Groups of pods that serve, as {"groups": [...]} in JSON: one for each shard, and two more. */}}
{{- define "twinsieve.groups" -}}
{{- $groups := list "fingerprint" -}}
{{- range $shard := untilStep 1 (int (add1 .Values.shards.count)) 1 -}}
{{- $groups = append $groups (printf "shard-%d" $shard) -}}
{{- end -}}
{{- dict "groups" (append $groups "resolver") | toJson -}}
{{- end -}}

{{/* Options that every command on the brokers takes. */}}
{{- define "twinsieve.connection" -}}
- --bootstrap
- {{ .Values.kafka.bootstrap | quote }}
{{- with .Values.kafka.prefix }}
- --prefix
- {{ . | quote }}
{{- end }}
{{- if .Values.kafka.clientSecret }}
- --properties
- /etc/twinsieve/client/client.properties
{{- end }}
{{- end -}}

{{- define "twinsieve.clientMount" -}}
{{- if .Values.kafka.clientSecret -}}
- name: client
  mountPath: /etc/twinsieve/client
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "twinsieve.clientVolume" -}}
{{- with .Values.kafka.clientSecret -}}
- name: client
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end -}}
{{- end -}}

{{/* What all pods have: no right in the cluster, the unprivileged user of the image, where to run. */}}
{{- define "twinsieve.podSettings" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "twinsieve.container" -}}
image: {{ include "twinsieve.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* A claim for the state folder. Takes: storage. */}}
{{- define "twinsieve.stateClaim" -}}
- metadata:
    name: state
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storage.className }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .storage.size }}
{{- end -}}

{{/*
A pod that runs `serve`. Takes: root, component, settings (the values of the group), steps (its arguments),
claimsState (whether the state folder is a claim of a StatefulSet; otherwise it goes with the pod).
*/}}
{{- define "twinsieve.servingPod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "twinsieve.labels" . | nindent 4 }}
  {{- with $values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- include "twinsieve.podSettings" .root | nindent 2 }}
  terminationGracePeriodSeconds: {{ add $values.drainSeconds 10 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "twinsieve.selector" . | nindent 10 }}
  containers:
    - name: twinsieve
      {{- include "twinsieve.container" .root | nindent 6 }}
      args:
        - serve
        {{- range .steps }}
        - {{ . | quote }}
        {{- end }}
        {{- include "twinsieve.connection" .root | nindent 8 }}
        - --group
        - {{ $values.kafka.group | quote }}
        - --state
        - /state/serve
        - --instance
        - $(POD_NAME)
        - --http
        - 0.0.0.0:{{ int $values.httpPort }}
        - --drain-s
        - {{ int $values.drainSeconds | quote }}
        - --log-format
        - json
        {{- range concat $values.extraArgs .settings.extraArgs }}
        - {{ . | quote }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
      {{- with $values.envSecret }}
      envFrom:
        - secretRef:
            name: {{ . }}
      {{- end }}
      ports:
        - name: http
          containerPort: {{ int $values.httpPort }}
      # Started once its state is restored.
      startupProbe:
        httpGet: { path: /startupz, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: {{ int (.settings.startupProbes | default 60) }}
      livenessProbe:
        httpGet: { path: /livez, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      readinessProbe:
        httpGet: { path: /readyz, port: http }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 3
      resources:
        {{- toYaml .settings.resources | nindent 8 }}
      volumeMounts:
        - name: state
          mountPath: /state
        - name: tmp
          mountPath: /tmp
        {{- include "twinsieve.clientMount" .root | nindent 8 }}
  volumes:
    {{- if not .claimsState }}
    - name: state
      emptyDir: {}
    {{- end }}
    - name: tmp
      emptyDir: {}
    {{- include "twinsieve.clientVolume" .root | nindent 4 }}
{{- end -}}
