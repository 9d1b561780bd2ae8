{{- define "quorumlog.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "quorumlog.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "quorumlog.labels" -}}
{{ include "quorumlog.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "quorumlog.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What follows a pod's name in its DNS name */}}
{{- define "quorumlog.domain" -}}
{{ include "quorumlog.name" . }}-nodes.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}

{{/* The voters by `controllers`, never by the number of pods that happen to run */}}
{{- define "quorumlog.voters" -}}
{{- $name := include "quorumlog.name" . -}}
{{- $domain := include "quorumlog.domain" . -}}
{{- $voters := list -}}
{{- range $id := until (int .Values.controllers) -}}
{{- $voters = append $voters (printf "%d@%s-%d.%s:9093" $id $name $id $domain) -}}
{{- end -}}
{{- join "," $voters -}}
{{- end -}}

{{/* root, name, roles, replicas, start: a StatefulSet of nodes whose ids are the numbers of its pods, from start on */}}
{{- define "quorumlog.nodes" -}}
{{- $ := .root -}}
{{- $values := .root.Values -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .name }}
  labels:
    {{- include "quorumlog.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  serviceName: {{ include "quorumlog.name" $ }}-nodes
  # A quorum needs its majority to become ready, so pods may not wait for each other.
  podManagementPolicy: Parallel
  replicas: {{ .replicas }}
  {{- if .start }}
  ordinals:
    start: {{ .start }}
  {{- end }}
  minReadySeconds: 10
  selector:
    matchLabels:
      {{- include "quorumlog.selector" $ | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "quorumlog.selector" $ | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
      annotations:
        checksum/settings: {{ include "quorumlog.settings" $ | sha256sum }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      # Time for what is below in preStop, and for a stop
      terminationGracePeriodSeconds: {{ add $values.drain.timeoutSeconds 90 }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- with $values.image.pullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        runAsGroup: 10001
        fsGroup: 10001
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: {{ $values.spread }}
          labelSelector:
            matchLabels:
              {{- include "quorumlog.selector" $ | nindent 14 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      initContainers:
        # A directory that is formatted stays as it is.
        - name: format
          image: {{ include "quorumlog.image" $ }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args:
            - storage
            - format
            - --config
            - /etc/quorumlog/server.properties
            - --cluster-id
            - {{ $values.clusterId | quote }}
            - --secret-file
            - /run/quorumlog-secret/cluster.secret
            - --ignore-formatted
          {{- include "quorumlog.container" . | nindent 10 }}
            - name: secret
              mountPath: /run/quorumlog-secret
              readOnly: true
      containers:
        - name: node
          image: {{ include "quorumlog.image" $ }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [server, start, -c, /etc/quorumlog/server.properties]
          ports:
            - {name: client, containerPort: 9092}
            - {name: internal, containerPort: 9093}
            - {name: grpc, containerPort: 9094}
            - {name: replication, containerPort: 9095}
            - {name: http, containerPort: 9096}
          # The port is open before logs are recovered, so a recovery may take as long as it takes.
          startupProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: http}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: http}
            periodSeconds: 5
            timeoutSeconds: 5
            failureThreshold: 3
          # Leaderships are handed over after SIGTERM. This waits first, so that no partition loses a second replica.
          lifecycle:
            preStop:
              exec:
                command:
                  - python
                  - /opt/quorumlog/share/wait_in_sync.py
                  - {{ $values.drain.timeoutSeconds | quote }}
                  - --bootstrap-servers
                  - localhost:9092
                  {{- with $values.drain.commandConfig }}
                  - --command-config
                  - {{ . | quote }}
                  {{- end }}
          resources:
            {{- toYaml $values.resources | nindent 12 }}
          {{- include "quorumlog.container" . | nindent 10 }}
      volumes:
        - name: settings
          configMap:
            name: {{ include "quorumlog.name" $ }}
        - name: secret
          secret:
            secretName: {{ $values.existingSecret }}
            defaultMode: 0440
        - name: tmp
          emptyDir:
            sizeLimit: 64Mi
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumeClaimTemplates:
    - metadata:
        name: data
        labels:
          {{- include "quorumlog.selector" $ | nindent 10 }}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $values.persistence.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ $values.persistence.size }}
{{- end -}}

{{/* Of both containers; it ends with the list of mounts. */}}
{{- define "quorumlog.container" -}}
{{- $ := .root -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - name: POD_NAMESPACE
    valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
  - name: QUORUMLOG_NODE_ID
    valueFrom: {fieldRef: {fieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"}}
  - name: QUORUMLOG_PROCESS_ROLES
    value: {{ .roles | quote }}
  - name: QUORUMLOG_ADVERTISED_LISTENERS
    value: {{ include "quorumlog.advertised" $ | quote }}
  {{- with $.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - name: data
    mountPath: /data
  - name: tmp
    mountPath: /tmp
  - name: settings
    mountPath: /etc/quorumlog
    readOnly: true
  {{- with $.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "quorumlog.advertised" -}}
{{- $addresses := list -}}
{{- $domain := include "quorumlog.domain" . -}}
{{- range $listener := list "CLIENT:9092" "INTERNAL:9093" "GRPC:9094" "REPLICATION:9095" -}}
{{- $parts := splitList ":" $listener -}}
{{- $addresses = append $addresses (printf "%s://$(POD_NAME).%s:%s" (first $parts) $domain (last $parts)) -}}
{{- end -}}
{{- join "," $addresses -}}
{{- end -}}

{{/* server.properties: what is the same in all pods */}}
{{- define "quorumlog.settings" -}}
controller.quorum.voters={{ include "quorumlog.voters" . }}
listeners=CLIENT://0.0.0.0:9092,INTERNAL://0.0.0.0:9093,GRPC://0.0.0.0:9094,REPLICATION://0.0.0.0:9095
metrics.host=0.0.0.0
metrics.port=9096
log.dirs=/data/log
{{- range $key, $value := .Values.settings }}
{{ $key }}={{ if kindIs "float64" $value }}{{ if eq $value (floor $value) }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}{{ else }}{{ $value }}{{ end }}
{{- end }}
{{- end -}}
